// SPDX-License-Identifier: MIT
// Runs `forktail lab` so that everything it leaves behind is found: every program of a run has the test's
// directory in its command line, its environment or its working directory.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/process.h"
#include "tests/support/tempdir.h"

namespace forktail::test
{

struct LabProcess {
	TempDir dir;
	std::string run = dir.file("run");   // the run directory it makes
	std::string temp = dir.file("temp"); // its TMPDIR
	std::unique_ptr<Process> lab;

	LabProcess();
	// `environment` is added to its own.
	void Begin(const std::vector<std::string> &argv,
		   const std::vector<std::pair<std::string, std::string>> &environment = {});

	// Waits until it prints `text` on standard error, after the last `after`. False if it ends first, or
	// does not print it in time.
	bool Says(const std::string &text, const std::string &after = "");
	// Its processes including itself: "pid command line". Zombies do not count.
	std::vector<std::string> Alive() const;
	// The files in its TMPDIR.
	std::vector<std::string> Left() const;
	// Its changes of the machine that are not reverted: its cgroups, its swap files.
	std::vector<std::string> Changed() const;
	// The pid of the living process whose command line contains `text`, or 0.
	pid_t Find(const std::string &text) const;
};

struct LabRun : LabProcess {
	// Starts a demo of 100 MiB with `more` options, which override these. `forktail` is the program to
	// run (empty: this build's).
	explicit LabRun(const std::vector<std::string> &more = {}, const std::string &forktail = "",
			const std::vector<std::pair<std::string, std::string>> &environment = {});
};

// Runs a scenario of the test at scale small into `run`.
struct ScenarioRun : LabProcess {
	std::string file = dir.file("s.toml");

	explicit ScenarioRun(const std::string &toml);
	void Start(const std::vector<std::string> &more = {});
	// Waits for its end: its exit status, or -1 without one.
	int Finish(const std::vector<std::string> &more = {});
};

// This machine's compressed block devices.
std::vector<std::string> Zrams();

} // namespace forktail::test
