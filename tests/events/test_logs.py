"""The log file and its ranks."""

from __future__ import annotations

import logging

from hookline.events.format import for_lines, format_scalars
from hookline.events.logs import RunLog, log_file
from tests.helpers import make_runner


def write(folder, message):
    handler = log_file(folder)
    handler.emit(logging.LogRecord("hookline", logging.WARNING, "", 0, message, None, None))
    handler.close()


def test_other_processes_than_the_first_have_a_file_of_their_own_and_name_themselves(
    tmp_path, monkeypatch
):
    write(tmp_path, "first")
    monkeypatch.setenv("RANK", "2")
    write(tmp_path, "third\nand more")
    assert (tmp_path / "hookline.log").read_text().endswith("WARNING first\n")
    lines = (tmp_path / "hookline.rank2.log").read_text().splitlines()
    assert all(line.startswith("[rank 2] ") for line in lines)
    assert len(lines) == 2


def test_the_file_gets_lines_that_the_user_does_not_see_until_it_is_closed(tmp_path):
    logger = logging.getLogger(f"{__name__}.run")
    logger.propagate = False
    logger.setLevel(logging.WARNING)
    shown = []
    handler = logging.Handler()
    handler.emit = lambda record: shown.append(record.getMessage())
    logger.addHandler(handler)
    run_log = RunLog(logger, tmp_path)
    logger.info("detail")
    logger.warning("trouble")
    run_log.log_failure(ValueError("broken"), 3)
    run_log.sync()
    run_log.close()
    logger.info("later")
    assert shown == ["trouble"]
    assert (logger.level, logger.handlers, handler.filters) == (logging.WARNING, [handler], [])
    text = (tmp_path / "hookline.log").read_text()
    assert [line.split()[2] for line in text.splitlines() if line[:2] == "20"] == [
        "INFO",
        "WARNING",
        "ERROR",
    ]
    assert "failed after 3 iterations" in text
    assert "ValueError: broken" in text


def test_the_file_is_complete_where_a_config_of_logging_disabled_the_logger(tmp_path):
    logger = logging.getLogger(f"{__name__}.disabled")
    logger.propagate = False
    shown = []
    handler = logging.Handler()
    handler.emit = lambda record: shown.append(record.getMessage())
    logger.addHandler(handler)
    logger.disabled = True
    run_log = RunLog(logger, tmp_path)
    logger.info("detail")
    logger.error("trouble")
    run_log.close()
    assert shown == []
    assert (logger.disabled, logger.level) == (True, logging.NOTSET)
    lines = (tmp_path / "hookline.log").read_text().splitlines()
    assert [line.split()[2] for line in lines] == ["INFO", "ERROR"]


def test_nothing_in_a_message_or_a_name_can_steer_a_terminal(tmp_path):
    write(tmp_path, "clear \x1b[2J the screen")
    assert "\x1b" not in (tmp_path / "hookline.log").read_text()
    assert format_scalars({"\x1b[2Jloss": 1.0}) == "\\x1b[2Jloss 1.0000"


def test_where_this_is_not_the_first_process_only_the_log_file_is_written(
    tmp_path, monkeypatch, caplog
):
    monkeypatch.setenv("RANK", "1")
    with caplog.at_level(logging.INFO, logger="hookline"):
        runner = make_runner(tmp_path, {"type": "LoggerHook", "interval": 1})
        runner.is_main = False
        runner.train()
    assert {path.name for path in tmp_path.iterdir()} == {"hookline.rank1.log"}
    assert [text for text in caplog.messages if text.startswith(("train", "stopped"))] == []


def test_a_line_has_the_learning_rates_of_a_few_groups_and_no_more():
    few = {"loss": 1.0, "lr": 1e-4, "lr/head": 3e-3, "lr_critic/1": 0.5, "system/cpu": 3.0}
    assert (
        format_scalars(for_lines(few))
        == "loss 1.0000  lr 1.000e-04  lr/head 0.0030  lr_critic/1 0.5000"
    )
    assert list(
        for_lines({"lr": 0.1, **{f"lr/{number}": 0.1 / number for number in range(1, 9)}})
    ) == ["lr"]
