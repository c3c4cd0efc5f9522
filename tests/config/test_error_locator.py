from __future__ import annotations

from hookline.config.error_locator import ErrorLocator
from hookline.config.locations import Config, SourceLocation
from hookline.errors import ConfigError
from hookline.hooks import EvalHook


def test_an_error_of_a_known_part_gets_its_file_and_line() -> None:
    places = {
        ("hooks", 0): SourceLocation("c.yaml", 7),
        ("metrics", 1): SourceLocation("c.yaml", 9),
    }
    config = Config({"hooks": [{"type": "EvalHook"}]}, "c.yaml", places)
    hook, metric = EvalHook(), object()
    locate = ErrorLocator(config, {("hooks", 0): hook, ("metrics", 1): metric})
    for part, line in ((hook, 7), (metric, 9)):
        problem = locate(part, ConfigError("wrong", parameter="metric")).problems[0]
        assert (problem.file, problem.line, problem.parameter) == ("c.yaml", line, "metric")


def test_an_error_of_another_part_stays() -> None:
    error = ConfigError("wrong")
    assert ErrorLocator(Config({}), {("hooks", 0): EvalHook()})(EvalHook(), error) is error
