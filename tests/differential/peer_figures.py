"""What the PyTorch Profiler tab (torch-tb-profiler) says of a trace.

Run as a program of its own, since the peer starts processes: `python peer_figures.py TRACE` prints one JSON object.
"""

from __future__ import annotations

import json
import sys
import warnings


def main(path: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch_tb_profiler.io import Cache
        from torch_tb_profiler.profiler.data import RunProfileData
        from torch_tb_profiler.profiler.run_generator import RunGenerator

        with Cache() as cache:
            data = RunProfileData.parse("worker", None, path, cache.cache_dir)
            data.process()
            overview = RunGenerator("worker", None, data).generate_run_profile().overview
    mean_step = overview["performance"][0]
    figures: dict[str, float] = {part["name"]: float(part["extra"]) for part in mean_step["children"]}
    figures |= {"steps": len(overview["steps"]["rows"]), "mean step": float(mean_step["value"])}
    for gpu in overview.get("gpu_metrics", {}).get("data", []):
        if gpu["title"].strip("&nbsp;") == "GPU Utilization":
            figures["GPU utilization"] = float(gpu["value"].rstrip(" %"))
    figures["operator device time"] = sum(operator.device_duration for operator in data.op_list_groupby_name or [])
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
