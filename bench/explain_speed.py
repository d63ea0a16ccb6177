# SPDX-License-Identifier: MIT
"""What `forktail explain` and `forktail report` cost by the length of a run: wall clock, CPU time and peak memory.

    bench/explain.sh [--table] [--write] [--against DIR] [--runs N] [--run DIR]... [--rate N] [--force]
        BUILD_DIR [MILLION_REQUESTS...]

Makes a run of each number of million requests (default: 10, 40 and 200) with bench_explain_run, and explains each
--runs times, as text and as a page, with the files in the page cache. --run DIR adds an existing run (bench/real_run
makes real ones); with --run and no numbers only those runs are measured. --against also measures another build's
forktail, alternating with this one's, so that slow changes of the machine affect both.

Prints a line per explanation. --table prints a Markdown table of medians and ranges instead. --write also puts it
between the markers of docs/results/speed.md. Figures for the page need an idle machine: --write refuses a load
average of 0.5 or more. --force writes anyway and notes it in the page.

Runs are made in $TMPDIR or /tmp. They need 11 bytes per request, and the 2 GB of 200 million requests must fit into the
page cache.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

import bench
import overhead_page
import quiet

PAGE = os.path.join(bench.ROOT, "docs", "results", "speed.md")
BEGIN, END = "<!-- explain: begin figures -->\n", "<!-- explain: end figures -->"
MILLIONS, RATE = (10, 40, 200), 50000
BUSY = 3  # exit status


class Cost:
    """What one process took. Its memory is the kernel's ru_maxrss, which starts with that of the Python process that
    forked it: about 20 MB, far below what is measured here."""

    def __init__(self, argv):
        with tempfile.TemporaryFile() as err:
            begun = time.monotonic()
            process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=err)
            try:
                _, status, usage = os.wait4(process.pid, 0)
            except BaseException:
                process.kill()
                raise
            self.wall_s = time.monotonic() - begun
            process.returncode = os.waitstatus_to_exitcode(status)
            err.seek(0)
            if process.returncode:
                sys.exit(f"{' '.join(argv)} ended with {process.returncode}: {err.read().decode(errors='replace')}")
        self.user_s, self.system_s = usage.ru_utime, usage.ru_stime
        self.peak_mb = usage.ru_maxrss * 1024 / 1e6

    def line(self):
        return (f"{self.wall_s:.2f} s wall, {self.user_s:.2f} s user, {self.system_s:.2f} s system, "
                f"{self.peak_mb:.0f} MB peak")


def in_cache(directory):
    """Reads all of a run once. Returns its size in bytes."""
    size = 0
    for name in os.listdir(directory):
        if name.endswith(".forktail"):
            with open(os.path.join(directory, name), "rb") as f:
                while chunk := f.read(1 << 20):
                    size += len(chunk)
    return size


class Bench:
    """Everything that one invocation measures."""

    def __init__(self, options):
        self.options = options
        self.builds = ([("before", options.against)] if options.against else []) + [("", options.build)]
        self.load_average = os.getloadavg()[0]
        self.rows = []  # (what of which run, its MB, by which build, costs)

    def measure(self, name, directory):
        size_mb = in_cache(directory) / 1e6
        self.say(f"{name}: {size_mb:.1f} MB")
        for command in ("explain", "report"):
            costs = {label: [] for label, _ in self.builds}
            for _ in range(self.options.runs):
                for label, build in self.builds:
                    argv = [os.path.join(build, "forktail"), command, directory]
                    argv += ["-o", os.path.join(self.directory, "page.html")] if command == "report" else []
                    costs[label].append(Cost(argv))
                    self.say(f"{command}{' ' + label if label else ''}: {costs[label][-1].line()}")
            self.rows += [(f"{command}, {name}", size_mb, label, costs[label]) for label, _ in self.builds]

    def say(self, text):
        if not self.options.table and not self.options.write:
            print(text, flush=True)

    def all(self):
        with tempfile.TemporaryDirectory() as self.directory:
            for millions in self.options.millions:
                made = os.path.join(self.directory, "run")
                os.mkdir(made)
                subprocess.run([os.path.join(self.options.build, "bench_explain_run"), made, f"{millions:g}",
                                str(self.options.rate)], check=True)
                at = "" if self.options.rate == RATE else f" at {self.options.rate:,}/s"
                self.measure(f"{millions:g} million made{at}", made)
                for name in os.listdir(made):
                    os.unlink(os.path.join(made, name))
                os.rmdir(made)
            for directory in self.options.run:
                self.measure(f"real run `{os.path.basename(os.path.normpath(directory))}`", directory)

    def table(self):
        rows = []
        for name, size_mb, label, costs in self.rows:
            rows.append([name, f"{size_mb:,.0f}"] + ([label or "after"] if self.options.against else []) +
                        [overhead_page.middle([getattr(c, of) for c in costs], digits)
                         for of, digits in (("wall_s", 2), ("user_s", 2), ("peak_mb", 0))])
        head = ["", "MB on disk"] + (["build"] if self.options.against else [])
        return overhead_page.table(head + ["wall, s", "user, s", "peak memory, MB"], rows)

    def heading(self):
        text = (f"`{' '.join(['bench/explain.sh', *sys.argv[1:]])}`, {time.strftime('%Y-%m-%d')}, {bench.host()}, "
                f"{self.load_average:.2f} at the start. Median (and range) of {self.options.runs}.")
        if self.options.force and self.load_average >= quiet.LOAD_LIMIT:
            text = "**Measured with `--force`, on a busy machine.** " + text
        return text


def arguments():
    parser = argparse.ArgumentParser(prog="bench/explain.sh", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--force", action="store_true")
    parser.add_argument("--against", metavar="DIR")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--run", action="append", default=[], metavar="DIR")
    parser.add_argument("--rate", type=int, default=RATE, help="requests per second of the generated runs")
    parser.add_argument("build", metavar="BUILD_DIR")
    parser.add_argument("millions", nargs="*", type=float, metavar="MILLION_REQUESTS")
    options = parser.parse_args()
    if not options.millions and not options.run:
        options.millions = list(MILLIONS)
    if options.runs < 1 or min([options.rate, *options.millions]) <= 0:
        parser.error("numbers from 1 up, please")
    return options


def programs_of(directory):
    """The directory of a build's programs: its bin/, or the directory itself."""
    for path in (os.path.join(directory, "bin"), directory):
        if os.access(os.path.join(path, "forktail"), os.X_OK):
            return path
    sys.exit(f"no forktail in {directory} or its bin/")


def main():
    options = arguments()
    options.build = programs_of(options.build)
    if options.against:
        options.against = programs_of(options.against)
    measured = Bench(options)
    if options.write and not options.force and measured.load_average >= quiet.LOAD_LIMIT:
        print(f"the machine is busy: its load average is {measured.load_average:.2f} and must be "
              f"below {quiet.LOAD_LIMIT}. Wait, or write them anyway with --force", file=sys.stderr)
        sys.exit(BUSY)
    measured.all()
    if not options.table and not options.write:
        return
    text = f"{measured.heading()}\n\n{measured.table()}"
    print(text)
    if options.write:
        bench.put(PAGE, BEGIN, END, text)


if __name__ == "__main__":
    main()
