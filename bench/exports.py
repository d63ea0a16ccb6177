# SPDX-License-Identifier: MIT
"""What `forktail export` costs by format and by the length of a run: wall clock, CPU time, peak memory, size.

    bench/exports [--write] [--runs N] [--format NAME]... [--force] BUILD_DIR [MILLION_REQUESTS...]

Makes a run of each number of million requests (default: 10) with bench_explain_run, and exports it --runs times to
every format that forktail has (or to those named), with the run in the page cache. Prints a Markdown table of medians
and ranges. --write also puts it between the markers of docs/results/speed.md. Figures for the page need an
idle machine: --write refuses a load average of 0.5 or more. --force writes anyway and notes it in the page.

Runs and exports are made in $TMPDIR or /tmp. CSV takes 150 bytes per request.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import bench
import explain_speed
import overhead_page
import quiet

PAGE = os.path.join(bench.ROOT, "docs", "results", "speed.md")
BEGIN, END = "<!-- exports: begin figures -->\n", "<!-- exports: end figures -->"


def formats_of(forktail):
    text = subprocess.run([forktail, "export", "--help"], check=True, capture_output=True, text=True).stdout
    listed = re.search(r"Format: (.*?) \(default", re.sub(r"\s+", " ", text))
    return listed.group(1).split(", ")


def size_of(path):
    if os.path.isfile(path):
        return os.path.getsize(path)
    return sum(os.path.getsize(os.path.join(path, name)) for name in os.listdir(path))


def remove(path):
    if os.path.isdir(path):
        shutil.rmtree(path)
    elif os.path.exists(path):
        os.unlink(path)


def measure(forktail, run, name, out, times):
    costs = []
    for _ in range(times):
        remove(out)
        costs.append(explain_speed.Cost([forktail, "export", run, "--to", name, "-o", out]))
        print(f"{name}: {costs[-1].line()}", file=sys.stderr, flush=True)
    size_mb = size_of(out) / 1e6
    remove(out)
    middles = [overhead_page.middle([getattr(c, of) for c in costs], digits)
               for of, digits in (("wall_s", 2), ("user_s", 2), ("peak_mb", 0))]
    return middles + [f"{size_mb:,.1f}"]


def arguments():
    parser = argparse.ArgumentParser(prog="bench/exports", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--force", action="store_true")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--format", action="append", metavar="NAME")
    parser.add_argument("build", metavar="BUILD_DIR")
    parser.add_argument("millions", nargs="*", type=float, metavar="MILLION_REQUESTS")
    options = parser.parse_args()
    options.millions = options.millions or [10]
    if options.runs < 1 or min(options.millions) <= 0:
        parser.error("numbers from 1 up, please")
    return options


def main():
    options = arguments()
    load_average = os.getloadavg()[0]
    if options.write and not options.force and load_average >= quiet.LOAD_LIMIT:
        print(f"the machine is busy: its load average is {load_average:.2f} and must be below "
              f"{quiet.LOAD_LIMIT}. Wait, or write them anyway with --force", file=sys.stderr)
        sys.exit(explain_speed.BUSY)
    programs = explain_speed.programs_of(options.build)
    forktail = os.path.join(programs, "forktail")
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        for millions in options.millions:
            run = os.path.join(directory, "run")
            os.mkdir(run)
            subprocess.run([os.path.join(programs, "bench_explain_run"), run, f"{millions:g}"], check=True)
            explain_speed.in_cache(run)
            for name in options.format or formats_of(forktail):
                rows.append([f"{name}, {millions:g} million"] + measure(forktail, run, name, os.path.join(directory, "out"), options.runs))
            shutil.rmtree(run)
    heading = (f"`{' '.join(['bench/exports', *sys.argv[1:]])}`, {time.strftime('%Y-%m-%d')}, {bench.host()}, "
               f"{load_average:.2f} at the start. Median (and range) of {options.runs}.")
    if options.force and load_average >= quiet.LOAD_LIMIT:
        heading = "**Measured with `--force`, on a busy machine.** " + heading
    head = ["", "wall, s", "user, s", "peak memory, MB", "export, MB"]
    text = f"{heading}\n\n{overhead_page.table(head, rows)}"
    print(text)
    if options.write:
        bench.put(PAGE, BEGIN, END, text)


if __name__ == "__main__":
    main()
