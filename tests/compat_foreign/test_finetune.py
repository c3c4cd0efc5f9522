"""Fine-tuning from a config, with transformers, peft and datasets themselves and models made on the spot."""

from __future__ import annotations

import io
import json
import pickle
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BatchEncoding,
)

from benchmarks import finetune
from examples.finetune import make_models
from hookline import ConfigError, Runner, make_loader
from hookline.checkpoint import load_checkpoint
from hookline.cli.main import main
from hookline.config import load_config, validate
from hookline.data.collators import PaddingCollator
from hookline.data.text_files import TextFiles
from hookline.export import OnnxModel
from hookline.hooks import ActivationCheckpointHook, LambdaHook
from hookline.models import MODELS
from hookline.parts import PARTS
from hookline.report.collect import RunReader
from tests.docs.pages import DOCS, ROOT
from tests.docs.test_snippets import run_page
from tests.problems import logged, raises_problem

CONFIGS = ROOT / "examples" / "finetune"
LOADERS = {
    "classification": AutoModelForSequenceClassification,
    "causal_lm": AutoModelForCausalLM,
}
TOKENS = torch.arange(2, 22).reshape(2, 10)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with tiny models and their data, as `make_models.py` writes them."""
    folder = tmp_path_factory.mktemp("project")
    make_models.main(folder / "finetune")
    return folder


@pytest.fixture(autouse=True)
def inside(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)


@pytest.fixture
def tokenizer() -> Any:
    return AutoTokenizer.from_pretrained("finetune/gpt2")


def from_config(job: str, folder: Path, *overrides: str) -> Runner:
    return Runner.from_config(CONFIGS / f"{job}.yaml", [f"work_dir={folder}", *overrides])


# Data


def test_lines_of_json_parquet_and_text_give_the_same_samples(tmp_path, tokenizer):
    texts = ["1 + 2 =", "3"]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    (tmp_path / "a.txt").write_text("1 + 2 =\n\n3\n")
    pyarrow.parquet.write_table(pyarrow.table({"text": texts}), tmp_path / "a.parquet")
    samples = []
    for suffix in ("jsonl", "txt", "parquet"):
        data = TextFiles(str(tmp_path / f"a.{suffix}"), tokenizer)
        samples.append([data[index] for index in range(len(data))])
    assert samples[0] == samples[1] == samples[2]
    ids = [*tokenizer(texts[0])["input_ids"], tokenizer.eos_token_id]
    assert samples[0][0] == {"input_ids": ids, "labels": ids}


def test_only_a_completion_has_labels(tokenizer):
    data = TextFiles(
        "finetune/sums_val.jsonl", tokenizer, text="question", completion="answer", max_length=32
    )
    sample = data[0]
    row = json.loads(Path("finetune/sums_val.jsonl").read_text().splitlines()[0])
    learned = [label for label in sample["labels"] if label != -100]
    assert learned[-1] == tokenizer.eos_token_id
    assert tokenizer.decode(learned[:-1]) == row["answer"]
    assert tokenizer.decode(sample["input_ids"][:-1]) == row["question"] + row["answer"]
    assert data.__getitems__([0, 1]) == [data[0], data[1]]


def test_classes_have_numbers_or_listed_names(tokenizer):
    options = {"tokenizer": tokenizer, "label": "label"}
    data = TextFiles("finetune/reviews_val.jsonl", class_names=["negative", "positive"], **options)
    assert {data[index]["labels"] for index in range(len(data))} == {0, 1}
    assert data.num_classes == 2
    with pytest.raises(ConfigError):
        TextFiles("finetune/reviews_val.jsonl", class_names=["good", "positive"], **options)
    with pytest.raises(ConfigError):
        TextFiles("finetune/reviews_val.jsonl", **options)


@pytest.mark.parametrize(
    ("options", "about"),
    [
        ({"text": "questoin"}, {"nearest": "question"}),
        ({"files": "missing.jsonl"}, {"parameter": "files"}),
        ({"files": ["finetune/sums_val.jsonl", "finetune/gpt2/config.json"]}, {}),
        ({"packing": True}, {"parameter": "max_length"}),
        ({"label": "answer", "completion": "answer"}, {"parameter": "completion"}),
    ],
)
def test_a_wrong_parameter_of_the_data_is_an_error(tokenizer, options, about):
    options = {"files": "finetune/sums_val.jsonl", "text": "question", **options}
    with raises_problem(component="TextFiles", **about):
        TextFiles(tokenizer=tokenizer, **options)


WRONG_DATA = {
    "no samples": ("", {}, "files"),
    "no json": ("{x\n", {}, "files"),
    "a text that is a number": ('{"text": 3}', {}, "text"),
    "a text that is missing": ('{"text": "1"}\n{"text": null}', {}, "text"),
    "a completion that is missing": (
        '{"text": "1", "more": null}',
        {"completion": "more"},
        "completion",
    ),
    "a completion that is cut away": (
        '{"text": "1 + 1 + 1", "more": "3"}',
        {"completion": "more", "max_length": 2},
        "max_length",
    ),
    "a class that is missing": ('{"text": "1", "class": null}', {"label": "class"}, "label"),
    "a class that is a fraction": ('{"text": "1", "class": 0.5}', {"label": "class"}, "label"),
    "a negative class": ('{"text": "1", "class": -1}', {"label": "class"}, "label"),
    "a class without a name": (
        '{"text": "1", "class": 2}',
        {"label": "class", "class_names": ["a", "b"]},
        "class_names",
    ),
    "a field of classes that is missing": ('{"text": "1"}', {"label": "class"}, "label"),
    "equal names": (
        '{"text": "1", "class": "a"}',
        {"label": "class", "class_names": ["a", "a"]},
        "class_names",
    ),
    "names without a field": ('{"text": "1"}', {"class_names": ["a"]}, "label"),
    "a length of 0": ('{"text": "1"}', {"max_length": 0}, "max_length"),
    "a tokenizer that is a name": ('{"text": "1"}', {"tokenizer": "gpt2"}, "tokenizer"),
}


@pytest.mark.parametrize(
    ("content", "options", "parameter"), WRONG_DATA.values(), ids=list(WRONG_DATA)
)
def test_wrong_data_is_an_error_that_names_the_parameter(
    tmp_path, tokenizer, content, options, parameter
):
    (tmp_path / "data.jsonl").write_text(content)
    with raises_problem(component="TextFiles", parameter=parameter):
        TextFiles(str(tmp_path / "data.jsonl"), **{"tokenizer": tokenizer, **options})


def test_texts_that_are_longer_than_the_model_takes_are_an_error(tmp_path, tokenizer):
    (tmp_path / "data.txt").write_text("1 + 1 + 1 + 1\n")
    tokenizer.model_max_length = 5
    for options in ({}, {"max_length": 6}):
        with raises_problem(component="TextFiles", parameter="max_length"):
            TextFiles(str(tmp_path / "data.txt"), tokenizer, **options)
    assert len(TextFiles(str(tmp_path / "data.txt"), tokenizer, max_length=5)[0]["labels"]) == 5


def test_samples_without_a_token_to_learn_are_left_out(tmp_path, tokenizer, caplog):
    rows = [{"text": "1 + 1 + 1", "more": "3"}, {"text": "1", "more": "3"}]
    (tmp_path / "data.jsonl").write_text("\n".join(map(json.dumps, rows)))
    file = str(tmp_path / "data.jsonl")
    data = TextFiles(file, tokenizer, completion="more", max_length=3)
    assert [data[index]["labels"] for index in range(len(data))] == [
        [-100, *tokenizer("3")["input_ids"], tokenizer.eos_token_id]
    ]
    assert logged(caplog, "1 of 2 samples")


def test_packed_samples_have_the_loss_of_padded_ones(tokenizer):
    common = {"tokenizer": tokenizer, "text": "question", "completion": "answer"}
    packed = TextFiles("finetune/sums_val.jsonl", packing=True, max_length=16, **common)
    padded = TextFiles("finetune/sums_val.jsonl", max_length=16, **common)
    model = AutoModelForCausalLM.from_pretrained("finetune/gpt2").eval()
    for implementation in ("sdpa", "eager"):
        model.set_attn_implementation(implementation)
        losses = []
        shapes = []
        for data in (packed, padded):
            batch = next(iter(make_loader(data, batch_size=16)))
            shapes.append(tuple(batch["input_ids"].shape))
            with torch.no_grad():
                losses.append(float(model(**batch).loss))
        assert shapes[0][0] < shapes[1][0] == 16
        assert losses[0] == pytest.approx(losses[1], abs=1e-6)


# Training


def test_a_batch_encoding_trains_a_model_of_transformers(tmp_path, tokenizer):
    model = AutoModelForCausalLM.from_pretrained("finetune/gpt2")

    def collate(samples: list[Any]) -> BatchEncoding:
        return BatchEncoding(PaddingCollator(1)(samples))

    data = TextFiles("finetune/sums_val.jsonl", tokenizer, text="question", completion="answer")
    runner = Runner(
        model,
        train_loader=make_loader(data, batch_size=32, collate_fn=collate),
        optimizer=torch.optim.AdamW(model.parameters()),
        max_iters=2,
        device="cpu",
        work_dir=tmp_path,
    )
    runner.train()
    assert torch.isfinite(runner.outputs["loss"])


def test_a_model_with_new_weights_is_built_from_the_config_of_its_class(tmp_path):
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "num_labels": 3}
    part = {"type": "transformers.BertConfig", **sizes}
    model = {"type": "transformers.AutoModelForSequenceClassification.from_config", "args": [part]}
    built = MODELS.build(model)
    assert built.classifier.out_features == 3
    with raises_problem(parameter="config"):
        MODELS.build({**model, "args": []})
    with raises_problem(parameter="num_lables"):
        MODELS.build({**model, "args": [{**part, "num_lables": 3}]})


@pytest.mark.parametrize("job", finetune.JOBS)
def test_losses_equal_those_of_the_trainer(tmp_path, job):
    ours, order, _ = finetune.train_ours(job, tmp_path / "ours")
    theirs = finetune.train_theirs(job, tmp_path / "theirs", order)
    assert len(ours) == len(theirs) > 20
    assert ours == pytest.approx(theirs, abs=1e-6)
    sizes = finetune.compare_checkpoints(job, tmp_path / "ours", tmp_path / "theirs")
    assert sizes["checkpoint"] <= 1.05 * sizes["adapter and moments"]
    assert sizes["checkpoint"] <= sizes["trainer"]


PACKED = ("dataset.train.packing=true", "loader.num_workers=2")


@pytest.mark.parametrize(
    ("job", "options"),
    [*((job, ()) for job in finetune.JOBS), ("causal_lm", PACKED)],
    ids=[*finetune.JOBS, "packed by two workers"],
)
def test_a_resumed_run_ends_with_the_same_bits(tmp_path, job, options):
    short = (
        *options,
        "training.epochs=null",
        "training.iters=9",
        "dataset.val=null",
        "training.metrics=[]",
    )
    hooks = "hooks=[{type: CheckpointHook, trainable_only: true, by_epoch: false, interval: 4}]"

    def stop(runner: Any) -> None:
        if runner.iter == 5:
            runner.request_stop("cut")

    whole = from_config(job, tmp_path / "whole", *short, hooks)
    whole.train()
    cut = from_config(job, tmp_path / "cut", *short, hooks)
    cut.register_hook(LambdaHook(after_train_iter=stop))
    cut.train()
    resumed = from_config(job, tmp_path / "cut", *short, hooks, "resume=auto")
    resumed.train()
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, resumed.model.state_dict()[name]), name


@pytest.mark.slow
@pytest.mark.parametrize("job", finetune.JOBS)
def test_a_run_that_is_killed_three_times_ends_with_the_same_bits(tmp_path, job, capsys):
    hooks = "hooks=[{type: CheckpointHook, trainable_only: true, by_epoch: false, interval: 5}]"
    options = ["dataset.val=null", "training.metrics=[]", hooks]
    command = ["verify-resume", str(CONFIGS / f"{job}.yaml"), *options]
    assert main([*command, "--kills", "3", "--work-dir", str(tmp_path), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["kills"] == 3
    assert not any(result["differences"].values())
    assert "base" in load_checkpoint(tmp_path / "straight" / "last.pth")


def test_validation_generates_text_and_shows_it(tmp_path):
    runner = from_config("causal_lm", tmp_path, "training.epochs=1")
    runner.train()
    assert runner.metrics["perplexity"] > 1
    assert runner.metrics["exact_match"] > 0
    (record,) = [
        each for each in RunReader(tmp_path).read()["records"] if each["name"] == "generated/val"
    ]
    assert " + " in record["text"]


def test_recomputed_activations_change_no_loss(tmp_path):
    options = ("dataset.val=null", "training={iters: 3}")
    losses = []
    for name in ("plain", "recomputed"):
        runner = from_config("causal_lm", tmp_path / name, *options, "hooks=[]")
        if name == "recomputed":
            runner.register_hook(ActivationCheckpointHook(modules="GPT2Block"))
        runner.train()
        losses.append(runner.outputs["loss"].item())
    assert losses[0] == losses[1]


# Publishing


@pytest.mark.parametrize("job", finetune.JOBS)
def test_a_published_checkpoint_is_opened_by_the_libraries(tmp_path, job, capsys):
    options = ("training.epochs=null", "training.iters=4", "dataset.val=null")
    runner = from_config(job, tmp_path, *options, "training.metrics=[]")
    runner.train()
    model = runner.model.eval()
    checkpoint = str(tmp_path / "last.pth")
    config = ["--config", str(CONFIGS / f"{job}.yaml")]
    publish = ["ckpt", "publish", checkpoint]
    assert main([*publish, "--format", "peft", *config]) == 0
    assert main([*publish, "--format", "hf", *config, "--shard-size", "300KB"]) == 0
    assert main([*publish, "--format", "safetensors"]) == 0
    capsys.readouterr()
    with torch.no_grad():
        expected = model(TOKENS).logits
        base = LOADERS[job].from_pretrained(model.get_base_model().name_or_path)
        adapted = PeftModel.from_pretrained(base, tmp_path / "last-peft").eval()
        assert torch.equal(adapted(TOKENS).logits, expected)
        merged = LOADERS[job].from_pretrained(tmp_path / "last-hf").eval()
        torch.testing.assert_close(merged(TOKENS).logits, expected, atol=1e-5, rtol=1e-5)
    assert len(list((tmp_path / "last-hf").glob("*.safetensors"))) > 1
    assert merged.config.vocab_size == model.get_base_model().config.vocab_size
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "last-hf")
    assert tokenizer("1 + 2 =")["input_ids"]
    card = (tmp_path / "last-peft" / "README.md").read_text()
    assert "PeftModel.from_pretrained" in card
    (file,) = tmp_path.glob("last-*.safetensors")
    assert set(load_file(file)) == set(load_checkpoint(checkpoint)["state_dict"])
    assert main([*publish, "--format", "peft", *config]) != 0  # The folder exists already.
    assert main([*publish, "--format", "hf"]) != 0  # There is no config.
    assert main([*publish, "--format", "hf", *config, "--shard-size", "big", "-o", "x"]) != 0


@pytest.mark.parametrize("job", finetune.JOBS)
def test_a_trained_model_is_exported_with_dynamic_batch_and_length(tmp_path, job):
    options = ["training.epochs=null", "training.iters=4", f"work_dir={tmp_path}"]
    runner = from_config(job, tmp_path, *options)
    runner.train()
    config = str(CONFIGS / f"{job}.yaml")
    assert main(["export", config, *options, "--checkpoint", str(tmp_path / "last.pth")]) == 0
    inputs = {"input_ids": TOKENS, "attention_mask": torch.ones_like(TOKENS)}
    if job == "classification":
        inputs["token_type_ids"] = torch.zeros_like(TOKENS)
    with torch.no_grad():
        expected = runner.model.eval()(**inputs).logits
    found = OnnxModel(tmp_path / "export" / "model.onnx")(**inputs)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


# Security

HOSTILE = [
    "transformers.pipeline",
    "transformers.AutoModel.register",
    "transformers.utils.hub.cached_file",
    "transformers.dynamic_module_utils.get_class_from_dynamic_module",
    "transformers.Trainer",
    "datasets.load_dataset",
    "datasets.Dataset.from_generator",
    "peft.load_peft_weights",
    "peft.save_peft_weights",
    "keras.layers.Lambda.from_config",
    "keras.layers.TorchModuleWrapper.from_config",
    "accelerate.utils.other.compile_regions",
    "huggingface_hub.snapshot_download",
    "lightning.pytorch.LightningModule.load_from_checkpoint",
]


@pytest.mark.parametrize("path", HOSTILE)
def test_other_functions_of_the_libraries_are_refused(path):
    data = {"type": "text", "files": "finetune/sums_val.jsonl"}
    base = {"training": {"iters": 1}}
    for config in (
        {**base, "model": {"type": path}, "dataset": "digits"},
        {**base, "model": "cnn", "dataset": {"type": path}},
        {**base, "model": "cnn", "dataset": {**data, "tokenizer": {"type": path}}},
    ):
        assert any(each.parameter == "type" for each in validate(load_config(config)))


def test_code_of_a_model_is_not_executed():
    config = load_config(CONFIGS / "causal_lm.yaml", ["model.model.trust_remote_code=true"])
    assert [each.parameter for each in validate(config)] == ["trust_remote_code"]


GPT2 = {"type": "transformers.AutoModelForCausalLM.from_pretrained", "args": ["finetune/gpt2"]}


class Evil:
    """Leaves a marker when it is unpickled."""

    def __reduce__(self) -> tuple[Any, tuple[str, str]]:
        return open, ("marker", "w")


def pickled(folder: Path, name: str) -> None:
    (weights,) = folder.glob("*.safetensors")
    weights.unlink()
    (folder / name).write_bytes(pickle.dumps(Evil(), protocol=2))


def changed(file: Path, **values: Any) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), **values}))


def with_code(folder: Path) -> None:
    """Let a folder name code for its config, model and tokenizer."""
    (folder / "planted.py").write_text("open('marker', 'w')\n")
    names = {"AutoConfig": "planted.Config", "AutoModelForCausalLM": "planted.Model"}
    changed(folder / "config.json", model_type="planted", auto_map=names)
    names = {"AutoTokenizer": ["planted.Tokenizer", None]}
    changed(folder / "tokenizer_config.json", tokenizer_class="Planted", auto_map=names)


def opened(folder: str, kind: str = "AutoModelForCausalLM") -> dict[str, Any]:
    return {"type": f"transformers.{kind}.from_pretrained", "args": [folder]}


def adapted(folder: str) -> dict[str, Any]:
    return {"type": "peft.PeftModel.from_pretrained", "args": [GPT2, folder]}


PLANTED_LIBRARY = {"base_model_class": "Model", "parent_library": "planted"}
HOSTILE_FOLDERS = {
    "pickled weights": (
        lambda model, adapter: pickled(model, "pytorch_model.bin"),
        {**opened("model"), "use_safetensors": False},
    ),
    "code for the model": (lambda model, adapter: with_code(model), opened("model")),
    "code for the tokenizer": (
        lambda model, adapter: with_code(model),
        opened("model", "AutoTokenizer"),
    ),
    "code through a config": (
        lambda model, adapter: with_code(model),
        {
            **GPT2,
            "type": GPT2["type"].replace("pretrained", "config"),
            "args": [opened("model", "PretrainedConfig")],
        },
    ),
    "a pickled adapter": (
        lambda model, adapter: pickled(adapter, "adapter_model.bin"),
        adapted("adapter"),
    ),
    "an adapter with a module to import": (
        lambda model, adapter: changed(
            adapter / "adapter_config.json", megatron_config={"a": 1}, megatron_core="planted"
        ),
        adapted("adapter"),
    ),
    "an adapter with a library to import": (
        lambda model, adapter: changed(
            adapter / "adapter_config.json", task_type=None, auto_mapping=PLANTED_LIBRARY
        ),
        {"type": "peft.AutoPeftModel.from_pretrained", "args": ["adapter"]},
    ),
}


@pytest.mark.parametrize(("prepare", "part"), HOSTILE_FOLDERS.values(), ids=list(HOSTILE_FOLDERS))
def test_code_and_pickles_in_a_folder_are_not_executed(
    project, tmp_path, monkeypatch, prepare, part
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("sys.stdin", io.StringIO())  # transformers asks on a terminal.
    (tmp_path / "planted.py").write_text("open('marker', 'w')\n")
    (tmp_path / "finetune").symlink_to(project / "finetune")
    shutil.copytree("finetune/gpt2", "model")
    base = AutoModelForCausalLM.from_pretrained("finetune/gpt2")
    get_peft_model(base, LoraConfig(r=2, fan_in_fan_out=True)).save_pretrained("adapter")
    prepare(Path("model"), Path("adapter"))
    with pytest.raises((ConfigError, pickle.UnpicklingError)):
        PARTS.build(part)
    assert not Path("marker").exists()
    assert "planted" not in sys.modules


# Documentation


def test_all_snippets_of_the_page_run(project, monkeypatch):
    run_page(DOCS / "fine-tuning.md", project, monkeypatch)


def test_the_jobs_of_the_examples_and_of_the_trainer_have_the_same_numbers():
    source = (CONFIGS / "with_trainer.py").read_text()
    for job, model in (("classification", "bert"), ("causal_lm", "gpt2")):
        config = (CONFIGS / f"{job}.yaml").read_text()
        (rate,) = re.findall(r"lr: ([\d.e-]+)", config)
        (epochs,) = re.findall(r"epochs: (\d+)", config)
        assert f'"epochs": {epochs}, "lr": {rate}' in source
        assert f"finetune/{model}" in config
