"""The files in a work directory that the report reads and writes."""

LOG = "log.jsonl"
TEXT_LOG = "hookline.log"
CONFIG = "config.yaml"
DESCRIPTION = "settings.yaml"  # of a run without a config
PICTURES = "visualizations"
RECORDS = "records"
COSTS = "hook_costs.json"
TIMELINE = "timeline.jsonl"
MIRROR = "mirror.json"
CONTROL = ".hookline.control"
INDEX = "log.index"
REPORT = "report.html"
