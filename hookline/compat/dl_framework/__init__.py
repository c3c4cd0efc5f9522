"""The interface of `dl_framework`: `trainers.BaseTrainer`, `utils.load_config`, `hooks.BaseHook`, `hooks.registry.HookRegistry`."""
