// SPDX-License-Identifier: MIT
// See talk.h.
#include "talk.h"

#include <limits>
#include <mpi.h>
#include <unistd.h>

#include "common/process/stops.h"
#include "recording/recording.h"

namespace forktail::hosts
{
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
