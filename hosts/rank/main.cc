// SPDX-License-Identifier: MIT
// forktail-rank: mpirun starts it for `forktail hosts run`, once on the host of that command (rank 0) and
// once on each host of the plan. A separate program, because nothing else in forktail needs MPI.
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <limits>
#include <mpi.h>
#include <sstream>
#include <string>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <vector>

#include "common/process.h"
#include "host_run.h"
#include "recording/recording.h"

namespace forktail::hosts
{

// The MPI functions that ranks need: texts and pieces of files between rank 0 and another rank, and the
// offset of two clocks. It polls with short sleeps, because Open MPI's own waiting uses a whole CPU.

bool BeginTalk(int *argc, char ***argv, int *rank, int *ranks);
void EndTalk();

void SendText(int to, const std::string &text);
// Polls for a text. False: a stop signal, or no text within `seconds`.
bool ReceiveText(int from, double seconds, std::string *text);

void SendPiece(int to, const std::vector<char> &bytes);
void ReceivePiece(int from, std::vector<char> *bytes);

// For rank 0: the offset of CLOCK_MONOTONIC of rank `with` from ours, by the fastest of several round trips.
// The other rank calls AnswerMeasure().
int64_t MeasureOffset(int with);
void AnswerMeasure();

// Collects the files of all hosts in one directory after their programs have ended: through MPI in pieces, or
// by a rename on the same file system. A second mpirun does it, so it works however the first one ended.

// Rank 0: stores the files of the others in RUN/hosts/NAME. Returns the exit status.
int Gather(const std::string &plan_path, const std::string &token, const std::string &run, int ranks);
// A host's rank: sends its files of run `token`, and removes them when rank 0 has stored them.
int HandOver(const std::string &token, const std::string &host);

// The start of a run: ranks check their versions, prepare, and agree on the start time. MPI ends here: no
// rank calls it while load runs.

// Rank 0: coordinates all other ranks. Returns the exit status.
int Lead(const std::string &plan_path, int ranks);
// A host's rank: does its part of the run to the end. Returns the exit status.
int Follow(const std::string &host);

} // namespace forktail::hosts

namespace
{

constexpr const char *kHelp =
    R"(Runs the programs of one host in a run on several hosts, and collects their files (docs/guides/many-hosts.md).
mpirun starts it for forktail hosts run: on the host of that command and on each host of the plan. Do not start it by hand.
Usage: forktail-rank run TOKEN --plan PLAN
       forktail-rank run TOKEN HOST
       forktail-rank gather TOKEN --plan PLAN RUN
       forktail-rank gather TOKEN HOST

Options:
  --help                      Print this help message and exit
  --version                   Print the version and exit
)";

} // namespace

int main(int argc, char **argv)
{
	using namespace forktail::hosts;
	if (argc > 1 && std::string(argv[1]) == "--version") {
		printf("forktail-rank %s\n", FORKTAIL_VERSION);
		return 0;
	}
	if (argc > 1 && std::string(argv[1]) == "--help") {
		fputs(kHelp, stdout);
		return 0;
	}
	const std::string mode = argc > 3 ? argv[1] : "", token = argc > 3 ? argv[2] : "",
			  host = argc > 3 ? argv[3] : "";
	const bool leads = host == "--plan";
	if ((mode != "run" && mode != "gather") || (leads && argc != (mode == "run" ? 5 : 6))) {
		fputs("forktail-rank: do not start this program by hand: forktail hosts run starts it; see "
		      "docs/guides/many-hosts.md\n",
		      stderr);
		return 2;
	}
	forktail::common::CatchStops();
	signal(SIGPIPE, SIG_IGN);
	int rank = 0, ranks = 0;
	if (!BeginTalk(&argc, &argv, &rank, &ranks) || (rank == 0) != leads)
		return 3;
	if (mode == "run")
		return leads ? Lead(argv[4], ranks) : Follow(host);
	return leads ? Gather(argv[4], token, argv[5], ranks) : HandOver(token, host);
}
namespace forktail::hosts
{

// Messages between rank 0 and another rank: "hello VERSION" / "plan TEXT" / "ready" or "cannot" / "measure",
// then round trips / "go NANOSECONDS" by the other's CLOCK_MONOTONIC. Rank 0 may send "stop" instead of any
// message.

namespace
{

constexpr uint64_t kSecond = 1'000'000'000, kSpare = 90 * kSecond;
constexpr double kPatience = 60;

bool Begins(const std::string &text, const char *with, std::string *rest)
{
	const std::string start = std::string(with) + " ";
	if (text.rfind(start, 0) != 0)
		return false;
	*rest = text.substr(start.size());
	return true;
}

int Cannot(const std::string &host, const std::string &why)
{
	Message message = NewMessage("cannot", host);
	message["why"] = why;
	message["stopped"] = common::Stops() > 0; // the reason is elsewhere
	Send(message);
	return 3;
}

int StopAll(int ranks)
{
	for (int i = 1; i < ranks; i++)
		SendText(i, "stop");
	EndTalk();
	return 3;
}

// True if all ranks have this version; else the difference is reported.
bool SameVersions(int ranks)
{
	bool same = true;
	for (int i = 1; i < ranks; i++) {
		std::string text, version, host;
		if (!ReceiveText(i, kPatience, &text) || !Begins(text, "hello", &version))
			return false;
		std::istringstream words(version);
		words >> version >> host;
		if (version == FORKTAIL_VERSION)
			continue;
		Cannot(host, "its forktail-rank has version " + version +
				 ", but this run needs " FORKTAIL_VERSION
				 ": install the same version on all hosts");
		same = false;
	}
	return same;
}

void SendHello(const std::string &host)
{
	char boot[40];
	struct utsname u;
	uname(&u);
	ft_boot_id(boot);
	Message message = NewMessage("hello", host);
	message["pid"] = getpid();
	message["parent"] = getppid();
	message["boot_id"] = boot;
	message["host_name"] = u.nodename;
	message["kernel"] = u.release;
	message["version"] = FORKTAIL_VERSION;
	Send(message);
}

uint64_t RealtimeAt(uint64_t monotonic_ns)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	const uint64_t real =
	    static_cast<uint64_t>(now.tv_sec) * kSecond + static_cast<uint64_t>(now.tv_nsec);
	return real + (monotonic_ns - ft_now_ns());
}

// Prepares this host and gets the start time. False: the run does not start, and the reason is reported.
bool Agree(HostRun *host_run, const std::string &host, Plan *plan, uint64_t *begin_ns)
{
	std::string text, rest, error;
	SendText(0, "hello " FORKTAIL_VERSION " " + host);
	if (!ReceiveText(0, kPatience, &text) || !Begins(text, "plan", &rest))
		return false;
	const PlanHost *mine = ReadPlan(rest, plan) ? FindHost(*plan, host) : nullptr;
	if (!mine)
		error = "cannot read the plan, or it has no host " + host;
	const bool can =
	    mine && PrepareHostRun(*mine, host_run, &error) && StartRecorders(host_run, *mine, &error);
	if (!can)
		Cannot(host, error);
	SendText(0, can ? "ready" : "cannot");
	// Other hosts may need time until their recorders are ready.
	if (!ReceiveText(0, kPatience, &text) || text != "measure")
		return false;
	AnswerMeasure();
	if (!ReceiveText(0, kPatience, &text) || !Begins(text, "go", &rest))
		return false;
	*begin_ns = strtoull(rest.c_str(), nullptr, 10);
	return true;
}

} // namespace

int Lead(const std::string &plan_path, int ranks)
{
	std::ifstream in(plan_path);
	std::stringstream text;
	text << in.rdbuf();
	Plan plan;
	std::string answer;
	if (!ReadPlan(text.str(), &plan)) {
		Cannot("", "cannot read " + plan_path);
		return StopAll(ranks);
	}
	if (!SameVersions(ranks))
		return StopAll(ranks);
	for (int i = 1; i < ranks; i++)
		SendText(i, "plan " + text.str());
	bool all = true;
	for (int i = 1; i < ranks; i++)
		all = ReceiveText(i, kPatience, &answer) && answer == "ready" && all;
	if (!all || common::Stops() > 0)
		return StopAll(ranks);
	std::vector<int64_t> offsets(static_cast<size_t>(ranks));
	for (int i = 1; i < ranks; i++) {
		SendText(i, "measure");
		offsets[static_cast<size_t>(i)] = MeasureOffset(i);
	}
	const uint64_t begin = ft_now_ns() + plan.settle_ns;
	for (int i = 1; i < ranks; i++)
		SendText(i, "go " + std::to_string(begin +
						   static_cast<uint64_t>(offsets[static_cast<size_t>(i)])));
	Message message = NewMessage("go", "");
	message["seconds"] = static_cast<double>(plan.settle_ns) * 1e-9;
	Send(message);
	EndTalk();
	return 0;
}

int Follow(const std::string &host)
{
	// This rank and its programs end when mpirun's daemon dies.
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	SendHello(host);
	HostRun host_run;
	Plan plan;
	uint64_t begin_ns = 0;
	const bool go = Agree(&host_run, host, &plan, &begin_ns);
	if (common::Stops() == 0) // else the other ranks may be gone
		EndTalk();
	if (go)
		RunLoads(&host_run, RealtimeAt(begin_ns), begin_ns + plan.duration_ns + kSpare);
	else
		EndHostRun(&host_run);
	Send(NewMessage("over", host));
	return go ? 0 : 3;
}

// Messages between rank 0 and another rank: "HOST" / "gather RUN\nPLAN" / "none", "moved" or "sends NAME",
// then pieces up to an empty one, for each file, and "complete", or "broken" where one could not be read /
// "stored" or "failed". A host's files are removed there once they are on disk here, and not before.

namespace
{

namespace fs = std::filesystem;

constexpr double kGatherPatience = 120;
constexpr size_t kPieceBytes = 1 << 20;
constexpr int kGentleSeconds = 20, kHardSeconds = 5;

std::string MarkerOf(const std::string &run, const std::string &token)
{
	return run + "/.forktail-hosts-" + token;
}

int Left(const std::string &host, const std::string &why)
{
	Message message = NewMessage("left", host);
	message["why"] = why;
	Send(message);
	return 3;
}

// Sends SIGKILL to every process of the run: those that have this file open.
void KillHolders(const std::string &lock)
{
	std::error_code ec;
	const fs::path path = fs::canonical(lock, ec);
	for (const auto &process : fs::directory_iterator("/proc", ec)) {
		const int pid = atoi(process.path().filename().c_str());
		if (pid <= 0 || pid == getpid())
			continue;
		for (const auto &fd : fs::directory_iterator(process.path() / "fd", ec))
			if (fs::read_symlink(fd.path(), ec) == path)
				kill(pid, SIGKILL);
	}
}

// Waits until all programs of the run have closed their recordings and released the lock.
void AwaitPrograms(const std::string &directory)
{
	const std::string path = directory + "/" + kLockFile;
	const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
	auto wait = [&](int seconds) {
		for (int i = 0; i < seconds * 20; i++) {
			if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0)
				return true;
			usleep(50000);
		}
		return false;
	};
	if (!wait(kGentleSeconds)) {
		KillHolders(path);
		wait(kHardSeconds);
	}
	unlink(path.c_str());
	if (fd >= 0)
		close(fd);
}

// True if rank 0's directory is on this file system, so that files can be renamed.
bool SameFileSystem(const std::string &run, const std::string &token, const std::string &directory)
{
	struct stat there, here;
	std::string found;
	std::ifstream(MarkerOf(run, token)) >> found;
	return found == token && stat(run.c_str(), &there) == 0 && stat(directory.c_str(), &here) == 0 &&
	       there.st_dev == here.st_dev;
}

bool MoveFiles(const std::string &directory, const std::string &to)
{
	std::error_code ec;
	for (const auto &file : fs::directory_iterator(directory, ec))
		if (rename(file.path().c_str(), (to + "/" + file.path().filename().string()).c_str()) != 0)
			return false;
	return !ec;
}

// False: the file could not be read completely, and that is reported.
bool SendFile(const fs::path &path, const std::string &host)
{
	std::vector<char> bytes;
	const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
	ssize_t n = 1;
	int why = errno;
	SendText(0, "sends " + path.filename().string());
	while (n > 0) {
		bytes.resize(kPieceBytes);
		n = fd < 0 ? -1 : read(fd, bytes.data(), bytes.size());
		if (n < 0 && fd >= 0)
			why = errno;
		bytes.resize(n > 0 ? static_cast<size_t>(n) : 0);
		SendPiece(0, bytes);
	}
	if (fd >= 0)
		close(fd);
	if (n < 0)
		Left(host, "cannot read " + path.string() + ": " + strerror(why));
	return n == 0;
}

// Receives all pieces of one file, even if they cannot be written (or `path` is ""). The file appears when it
// is complete.
bool TakeFile(int from, const std::string &path)
{
	std::vector<char> bytes;
	const std::string part = path.empty() ? "" : path + ".part";
	FILE *file = fopen(part.c_str(), "w");
	int why = file ? 0 : errno;
	do {
		ReceivePiece(from, &bytes);
		if (!why && fwrite(bytes.data(), 1, bytes.size(), file) != bytes.size())
			why = errno;
	} while (!bytes.empty());
	if (!why && (fflush(file) != 0 || fsync(fileno(file)) != 0))
		why = errno;
	if (file && fclose(file) != 0 && !why)
		why = errno;
	if (!why && rename(part.c_str(), path.c_str()) != 0)
		why = errno;
	if (why && file)
		unlink(part.c_str());
	errno = why;
	return why == 0;
}

// True if the name cannot leave the directory.
bool IsFileName(const std::string &name)
{
	return !name.empty() && name[0] != '.' && name.find('/') == std::string::npos;
}

// Receives the files of one host. False: the remaining files are reported.
bool TakeHost(int from, const PlanHost &host, const std::string &directory)
{
	std::string text;
	bool good = true, some = false, whole = true;
	int why = 0;
	while (ReceiveText(from, kGatherPatience, &text)) {
		if (text == "none")
			return true;
		if (text == "moved" || text == "complete" || text == "broken") {
			some = true;
			whole = text != "broken";
			break;
		}
		const std::string name = text.rfind("sends ", 0) == 0 ? text.substr(6) : "";
		const std::string path = directory + "/" + name;
		if (TakeFile(from, IsFileName(name) ? path : ""))
			continue;
		good = false;
		why = errno;
	}
	SendText(from, good && some && whole ? "stored" : "failed");
	if (!good)
		Left(host.name, "cannot write to " + directory + ": " + strerror(why));
	return good && some && whole;
}

} // namespace

int Gather(const std::string &plan_path, const std::string &token, const std::string &run, int ranks)
{
	std::ifstream in(plan_path);
	std::stringstream text;
	text << in.rdbuf();
	Plan plan;
	std::string host;
	int status = ReadPlan(text.str(), &plan) ? 0 : 3;
	std::ofstream(MarkerOf(run, token)) << token << '\n';
	for (int i = 1; i < ranks; i++) {
		const PlanHost *known =
		    ReceiveText(i, kGatherPatience, &host) ? FindHost(plan, host) : nullptr;
		std::error_code ec;
		const std::string directory = run + "/hosts/" + host;
		if (known)
			fs::create_directories(directory, ec);
		SendText(i, "gather " + run + "\n" + text.str());
		if (!known || !TakeHost(i, *known, directory))
			status = 3;
	}
	unlink(MarkerOf(run, token).c_str());
	EndTalk();
	return status;
}

int HandOver(const std::string &token, const std::string &host)
{
	std::string text, answer;
	Plan plan;
	SendText(0, host);
	if (!ReceiveText(0, kGatherPatience, &text) || text.rfind("gather ", 0) != 0)
		return 3;
	const size_t line = text.find('\n');
	const std::string run = text.substr(7, line - 7);
	const PlanHost *mine = ReadPlan(text.substr(line + 1), &plan) ? FindHost(plan, host) : nullptr;
	if (!mine) {
		Left(host, "cannot read the plan");
		EndTalk();
		return 3;
	}
	const std::string &directory = mine->directory;
	struct stat here;
	// Not a link of another user.
	if (lstat(directory.c_str(), &here) != 0 || !S_ISDIR(here.st_mode) || here.st_uid != geteuid()) {
		SendText(0, "none");
		Send(NewMessage("stored", host)); // nothing to send
		EndTalk();
		return 0;
	}
	AwaitPrograms(directory);
	std::error_code ec;
	if (SameFileSystem(run, token, directory) && MoveFiles(directory, run + "/hosts/" + host)) {
		SendText(0, "moved");
	} else {
		bool whole = true;
		for (const auto &file : fs::directory_iterator(directory, ec))
			whole = SendFile(file.path(), host) && whole;
		SendText(0, whole && !ec ? "complete" : "broken");
	}
	const bool stored = ReceiveText(0, kGatherPatience, &answer) && answer == "stored";
	if (stored)
		fs::remove_all(directory, ec);
	else
		Left(host, "its files are still in " + directory + " on that host");
	Send(NewMessage(stored ? "stored" : "left", host));
	EndTalk();
	return stored ? 0 : 3;
}

namespace
{

constexpr int kText = 1, kPiece = 2, kClock = 3, kRounds = 20;
constexpr unsigned kNapMicroseconds = 1000;

void ReceiveBytes(int from, int tag, std::vector<char> *bytes)
{
	MPI_Status status;
	int size = 0;
	MPI_Probe(from, tag, MPI_COMM_WORLD, &status);
	MPI_Get_count(&status, MPI_CHAR, &size);
	bytes->resize(static_cast<size_t>(size));
	MPI_Recv(bytes->data(), size, MPI_CHAR, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

} // namespace

bool BeginTalk(int *argc, char ***argv, int *rank, int *ranks)
{
	return MPI_Init(argc, argv) == MPI_SUCCESS && MPI_Comm_rank(MPI_COMM_WORLD, rank) == MPI_SUCCESS &&
	       MPI_Comm_size(MPI_COMM_WORLD, ranks) == MPI_SUCCESS;
}

void EndTalk()
{
	MPI_Finalize();
}

void SendText(int to, const std::string &text)
{
	MPI_Send(text.data(), static_cast<int>(text.size()), MPI_CHAR, to, kText, MPI_COMM_WORLD);
}

bool ReceiveText(int from, double seconds, std::string *text)
{
	const uint64_t limit = ft_now_ns() + static_cast<uint64_t>(seconds * 1e9);
	int there = 0;
	while (MPI_Iprobe(from, kText, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE) == MPI_SUCCESS && !there) {
		if (common::Stops() > 0 || ft_now_ns() > limit)
			return false;
		usleep(kNapMicroseconds);
	}
	std::vector<char> bytes;
	ReceiveBytes(from, kText, &bytes);
	text->assign(bytes.begin(), bytes.end());
	return true;
}

void SendPiece(int to, const std::vector<char> &bytes)
{
	MPI_Send(bytes.data(), static_cast<int>(bytes.size()), MPI_CHAR, to, kPiece, MPI_COMM_WORLD);
}

void ReceivePiece(int from, std::vector<char> *bytes)
{
	ReceiveBytes(from, kPiece, bytes);
}

int64_t MeasureOffset(int with)
{
	uint64_t best = std::numeric_limits<uint64_t>::max();
	int64_t offset = 0;
	for (int i = 0; i < kRounds; i++) {
		uint64_t theirs = 0;
		const uint64_t sent = ft_now_ns();
		MPI_Send(&sent, 1, MPI_UINT64_T, with, kClock, MPI_COMM_WORLD);
		MPI_Recv(&theirs, 1, MPI_UINT64_T, with, kClock, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		const uint64_t back = ft_now_ns();
		if (back - sent >= best)
			continue;
		best = back - sent;
		offset = static_cast<int64_t>(theirs - (sent + best / 2));
	}
	return offset;
}

void AnswerMeasure()
{
	for (int i = 0; i < kRounds; i++) {
		uint64_t theirs = 0;
		MPI_Recv(&theirs, 1, MPI_UINT64_T, 0, kClock, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		const uint64_t now = ft_now_ns();
		MPI_Send(&now, 1, MPI_UINT64_T, 0, kClock, MPI_COMM_WORLD);
	}
}

} // namespace forktail::hosts
