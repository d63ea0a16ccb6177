// SPDX-License-Identifier: MIT
// The request log by windows, joined with the kernel's log.
//
// A block is decoded to its place in the window, and impossible entries are dropped there. What workers
// cannot do in parallel (unannounced connections, counting dropped entries) is done when a window is taken.
#include "log_reader.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>
#include <utility>

#include "analysis/sender.h"

namespace forktail::analysis
{

namespace
{

size_t Workers()
{
	return std::clamp<size_t>(std::thread::hardware_concurrency(), 1, 8);
}

// Calls see(member) for each column of a kernel log alone. Joined requests have read_ns too.
template <typename See> void EachSeen(See see, bool with_read = true)
{
	if (with_read)
		see(&Requests::read_ns);
	see(&Requests::written_ns);
	see(&Requests::request_bytes);
	see(&Requests::answer_bytes);
}

// Calls see(member) for each column of requests.
template <typename See> void EachColumn(See see)
{
	see(&Requests::due_ns);
	see(&Requests::sent_ns);
	see(&Requests::end_ns);
	see(&Requests::connection);
	see(&Requests::op);
	see(&Requests::status);
	see(&Requests::behind);
	see(&Requests::arrival_ns);
	see(&Requests::server_arrival_ns);
	see(&Requests::answered_ns);
	EachSeen(see);
}

} // namespace

// A worker's readers.
struct LogReader::Scratch {
	std::map<const OpenFile *, std::unique_ptr<ft_reader, CloseReader>> readers;
	std::vector<Unknown> unknown;

	ft_reader *ReaderOf(const OpenFile &f)
	{
		auto &reader = readers[&f];
		if (!reader)
			reader = OpenAgain(f);
		return reader.get();
	}
};

LogReader::LogReader(std::vector<LogBlock> blocks, size_t window, Run *run, const TimeSpan &part,
		     const ConnectionsRead &connections)
    : blocks_(std::move(blocks)), window_(window), run_(run), part_(part), connections_(connections)
{
	for (size_t b = 0; b < blocks_.size(); b++) {
		uint32_t count = std::min<uint32_t>(blocks_[b].place.count, FT_REQUEST_BLOCK);
		if (windows_.empty() || windows_.back().count + count > window)
			windows_.push_back({b, b, 0});
		windows_.back().end_block = b + 1;
		windows_.back().count += count;
		count_ += count;
	}
}

void LogReader::Join(std::unique_ptr<WindowJoin> join)
{
	join_ = std::move(join);
}

LogReader::~LogReader()
{
	if (ahead_.valid())
		ahead_.wait();
}

namespace
{

// Which optional columns a block has.
struct BlockColumns {
	bool behind, arrivals, seen;
};

// Decodes a block to its place, in the run's clock. Returns the number of requests.
size_t DecodeAt(const ft_block &block, const ClockMap &clock, const BlockColumns &has, size_t at, Requests *q)
{
	ft_request_columns columns = {};
	columns.intended_ns = &q->due_ns[at];
	columns.start_ns = &q->sent_ns[at];
	columns.end_ns = &q->end_ns[at];
	columns.connection = &q->connection[at];
	columns.op = &q->op[at];
	columns.status = &q->status[at];
	columns.behind = has.behind ? &q->behind[at] : nullptr;
	columns.arrival_ns = has.arrivals ? &q->arrival_ns[at] : nullptr;
	columns.read_ns = has.seen ? &q->read_ns[at] : nullptr;
	columns.written_ns = has.seen ? &q->written_ns[at] : nullptr;
	columns.request_bytes = has.seen ? &q->request_bytes[at] : nullptr;
	columns.answer_bytes = has.seen ? &q->answer_bytes[at] : nullptr;
	if (!block.count || block.count > FT_REQUEST_BLOCK)
		return 0;
	const int decoded = ft_requests_decode(block.payload, block.bytes, block.count, &columns);
	for (int i = 0; !clock.same() && i < decoded; i++)
		for (uint64_t *times : {columns.intended_ns, columns.start_ns, columns.end_ns,
					columns.arrival_ns, columns.read_ns, columns.written_ns})
			if (times)
				times[i] = clock.Map(times[i]);
	return decoded > 0 ? static_cast<size_t>(decoded) : 0;
}

// Drops times that are wrong, because a clock was set: an arrival or a read outside its request, or a write
// before its end.
void DropImpossible(const BlockColumns &has, size_t i, Requests *q)
{
	auto within = [&](uint64_t t_ns) { return t_ns >= q->sent_ns[i] && t_ns <= q->end_ns[i]; };
	if (has.arrivals && !within(q->arrival_ns[i]))
		q->arrival_ns[i] = 0;
	if (has.seen && !within(q->read_ns[i]))
		q->read_ns[i] = 0;
	if (has.seen && q->written_ns[i] < q->end_ns[i])
		q->written_ns[i] = 0;
}

} // namespace

// Decodes one block into `out`, from index `at`. What is left out is overwritten by what follows.
void LogReader::DecodeBlock(const LogBlock &b, size_t at, Scratch *s, Decoded *out, size_t index)
{
	const OpenFile &f = *b.file;
	Requests &q = out->requests;
	ft_block block;
	ft_reader *reader = s->ReaderOf(f);
	if (!reader || ft_reader_read(reader, &b.place, &block) != 1) {
		out->lost[index] = 1;
		return;
	}
	const BlockColumns has = {ft_requests_have_behind(block.payload, block.bytes),
				  ft_requests_have_arrivals(block.payload, block.bytes),
				  ft_requests_have_seen(block.payload, block.bytes)};
	const size_t decoded = DecodeAt(block, f.clock, has, at, &q);
	std::array<uint8_t, 256> ops = {}, behind = {};
	std::copy_n(f.ops.begin(), std::min(f.ops.size(), ops.size()), ops.begin());
	std::copy_n(f.behind.begin(), std::min(f.behind.size(), behind.size()), behind.begin());
	const uint64_t *due_ns = q.due_ns.data(), *sent_ns = q.sent_ns.data(), *end_ns = q.end_ns.data();
	uint32_t *connection = q.connection.data();
	uint8_t *op = q.op.data();
	const bool more = has.behind || has.arrivals || has.seen;
	uint32_t kept = 0, outside = 0;
	// A request that was never sent has no connection: the first one's load applies.
	uint32_t last_id = UINT32_MAX, last_index = f.connections->First();
	const uint32_t of_none = last_index;
	auto left_out = [&] {
		return f.session->LeavesOut(last_index) || connections_.LeavesOut(last_index);
	};
	bool leave = left_out();
	for (size_t i = at; i < at + decoded; i++) {
		// Times that run backwards or are beyond any clock would spoil every sum.
		if (due_ns[i] > sent_ns[i] || sent_ns[i] > end_ns[i] || end_ns[i] >> 62)
			continue;
		if (connection[i] != last_id) {
			last_id = connection[i];
			last_index = last_id == UINT32_MAX ? of_none : f.connections->Index(last_id);
			leave = left_out();
		}
		if (leave || due_ns[i] < part_.since_ns || due_ns[i] >= part_.until_ns) {
			outside++;
			continue;
		}
		const size_t to = at + kept++;
		if (to != i)
			EachColumn([&](auto column) { (q.*column)[to] = (q.*column)[i]; });
		if (last_index == kNoConnection)
			s->unknown.push_back({to, last_id, b.file});
		connection[to] = last_index;
		op[to] = ops[op[to]];
		if (!more)
			continue;
		if (has.behind)
			q.behind[to] = behind[q.behind[to]];
		DropImpossible(has, to, &q);
	}
	out->kept[index] = kept;
	out->outside[index] = outside;
	out->behind[index] = has.behind;
	out->arrivals[index] = has.arrivals;
	out->seen[index] = has.seen;
}

LogReader::Decoded LogReader::Decode(const Window &window, size_t lead, Requests room)
{
	Decoded out;
	size_t blocks = window.end_block - window.first_block;
	out.requests = std::move(room);
	out.kept.resize(blocks);
	out.outside.resize(blocks);
	out.lost.resize(blocks);
	out.behind.resize(blocks);
	out.arrivals.resize(blocks);
	out.seen.resize(blocks);
	EachColumn([&](auto column) {
		(out.requests.*column).Truncate(0);
		(out.requests.*column).Extend(lead + window.count);
	});
	std::vector<size_t> at(blocks);
	for (size_t b = 0, next = lead; b < blocks; b++) {
		at[b] = next;
		next += std::min<uint32_t>(blocks_[window.first_block + b].place.count, FT_REQUEST_BLOCK);
	}
	std::atomic<size_t> todo = 0;
	auto work = [&](Scratch *scratch) {
		for (size_t b = todo++; b < blocks; b = todo++)
			DecodeBlock(blocks_[window.first_block + b], at[b], scratch, &out, b);
	};
	scratch_.resize(Workers());
	std::vector<std::thread> threads;
	for (size_t w = 1; w < std::min(Workers(), blocks); w++)
		threads.emplace_back(work, &scratch_[w]);
	work(&scratch_[0]);
	for (std::thread &t : threads)
		t.join();
	for (Scratch &s : scratch_) {
		out.unknown.insert(out.unknown.end(), s.unknown.begin(), s.unknown.end());
		s.unknown.clear();
	}
	// In the order of the log, independent of the workers.
	std::sort(out.unknown.begin(), out.unknown.end(),
		  [](const Unknown &a, const Unknown &b) { return a.request < b.request; });
	return out;
}

void LogReader::Begin(size_t window, Requests room)
{
	size_t lead = window ? lead_ : 0;
	ahead_ = std::async(std::launch::async, [this, window, lead, room = std::move(room)]() mutable {
		return Decode(windows_[window], lead, std::move(room));
	});
}

void LogReader::Rewind()
{
	if (windows_.size() > 1 || loaded_ == SIZE_MAX) {
		if (ahead_.valid() && next_ != 0)
			spare_ = std::move(ahead_.get().requests);
		loaded_ = SIZE_MAX;
	}
	next_ = 0;
}

// Copies the last requests of the window before to the room in front of those just decoded.
size_t LogReader::AddLead(size_t room, Requests *q) const
{
	const Requests &last = run_->requests;
	size_t lead = next_ ? std::min(room, last.size()) : 0;
	EachColumn([&](auto column) {
		const auto &from = last.*column;
		if (from.empty())
			std::fill_n((q->*column).begin(), lead, 0);
		else
			std::copy_n(from.end() - lead, lead, (q->*column).begin());
	});
	return lead;
}

// Makes a window the current one of the run.
void LogReader::Take(size_t room_for_lead, Decoded *d)
{
	const Window &window = windows_[next_];
	Requests &q = d->requests;
	for (const Unknown &u : d->unknown)
		q.connection[u.request] = u.file->connections->Make(u.id, run_);
	auto any = [](const std::vector<uint8_t> &blocks) {
		return std::find(blocks.begin(), blocks.end(), 1) != blocks.end();
	};
	behind_ |= any(d->behind) || (join_ && join_->HasBehind());
	arrivals_ |= any(d->arrivals);
	seen_ |= any(d->seen);
	q.lead = AddLead(room_for_lead, &q);
	size_t from = room_for_lead, to = q.lead;
	for (size_t b = 0; b < d->kept.size(); b++) {
		const LogBlock &block = blocks_[window.first_block + b];
		uint32_t count = std::min<uint32_t>(block.place.count, FT_REQUEST_BLOCK), kept = d->kept[b];
		if (window.first_block + b >= counted_) {
			block.file->lost += d->lost[b];
			block.file->malformed += d->lost[b] ? 0 : block.place.count - kept - d->outside[b];
		}
		if (behind_ && !d->behind[b])
			std::fill_n(q.behind.begin() + from, kept, uint8_t{0});
		if (arrivals_ && !d->arrivals[b])
			std::fill_n(q.arrival_ns.begin() + from, kept, uint64_t{0});
		if (seen_ && !d->seen[b])
			EachSeen([&](auto column) { std::fill_n((q.*column).begin() + from, kept, 0); });
		if (from != to)
			EachColumn([&](auto column) {
				std::copy_n((q.*column).begin() + from, kept, (q.*column).begin() + to);
			});
		from += count;
		to += kept;
	}
	counted_ = std::max(counted_, window.end_block);
	EachColumn([&](auto column) { (q.*column).Truncate(to); });
	if (!behind_)
		q.behind.Truncate(0);
	if (!arrivals_)
		q.arrival_ns.Truncate(0);
	if (!seen_)
		EachSeen([&](auto column) { (q.*column).Truncate(0); }, !join_);
	JoinWindow(&q);
	q.first = next_ ? number_ : 0;
	number_ = q.first + to - q.lead;
}

void LogReader::JoinWindow(Requests *q)
{
	if (join_) {
		if (next_ == 0)
			join_->Rewind();
		return join_->Fill(q);
	}
	q->server_arrival_ns.Truncate(0);
	q->answered_ns.Truncate(0);
}

bool LogReader::Next()
{
	if (next_ == windows_.size())
		return false;
	if (progress_ && next_ == 0)
		progress_->Begin();
	if (progress_)
		progress_->At(next_, windows_.size());
	if (loaded_ == next_) { // there is only one window
		next_++;
		return true;
	}
	if (!ahead_.valid())
		Begin(next_, std::move(spare_));
	Decoded decoded = ahead_.get();
	Take(next_ ? lead_ : 0, &decoded);
	spare_ = std::exchange(run_->requests, std::move(decoded.requests));
	loaded_ = next_++;
	if (next_ < windows_.size())
		Begin(next_, std::move(spare_));
	return true;
}

void WaitingJoin::Rewind()
{
	log_.Forget(); // another join may have replaced the requests
	log_.Rewind();
	Clear();
	waiting_ = 0;
	reached_ns_ = 0;
}

void WaitingJoin::Reach(uint64_t t_ns)
{
	if (t_ns <= reached_ns_)
		return;
	reached_ns_ = t_ns;
	while (log_.NextStart() <= reached_ns_ + bound_ns_ + kLogDisorderNs && log_.Next()) {
		TakeWindow();
		if (waiting_ > most_)
			waiting_ = Prune();
	}
}

namespace
{

// The thread that read a connection then; 0: unknown.
uint32_t ReaderOf(const Connection &connection, uint64_t read_ns)
{
	uint32_t tid = 0;
	for (const Connection::Reader &r : connection.readers)
		if (!tid || r.since_ns <= read_ns)
			tid = r.tid;
	return tid;
}

// Notes a request of another client than the load generator, if the server had it for long.
void NoteOther(const Run &kernel, size_t i, Run *run)
{
	constexpr uint64_t least_ns = 1'000'000;
	constexpr size_t most = 100'000;
	const Requests &q = kernel.requests;
	const uint64_t read_ns = q.read_ns.empty() ? 0 : q.read_ns[i];
	if (!read_ns || q.end_ns[i] < read_ns + least_ns || run->others.size() >= most)
		return;
	const uint64_t bytes = q.request_bytes.empty() ? 0 : uint64_t{q.request_bytes[i]} + q.answer_bytes[i];
	const Connection &connection = kernel.connections[q.connection[i]];
	run->others.push_back({read_ns, q.end_ns[i], bytes,
			       q.op[i] < kernel.ops.size() ? kernel.ops[q.op[i]] : "other",
			       NameOfSender(kernel, connection), ReaderOf(connection, read_ns)});
}

} // namespace

// Requests of the kernel log wait by socket until the load generator's log comes to them.

KernelJoin::KernelJoin(std::vector<LogBlock> blocks, size_t window, const TimeSpan &part,
		       const SocketPairs &sockets, std::unique_ptr<WindowJoin> before, Run *kernel, Run *run)
    : WaitingJoin(std::move(blocks), window, kernel, part, {}, run->clocks_bound_ns), kernel_(kernel),
      run_(run), sockets_(sockets), lines_(run->connections.size())
{
	log_.Join(std::move(before));
}

void KernelJoin::Clear()
{
	for (Line &line : lines_)
		line = {};
}

// Adds the requests of the kernel log's current window to the lines of their sockets.
void KernelJoin::TakeWindow()
{
	const Requests &q = kernel_->requests;
	for (size_t i = q.lead; i < q.size(); i++) {
		if (q.connection[i] >= sockets_.size())
			continue; // a connection without a record
		const SameSocket *same = nullptr;
		for (const SameSocket &s : sockets_[q.connection[i]])
			if (s.opened_ns <= q.sent_ns[i] + bound_ns_)
				same = &s;
		if (!same) {
			if (q.first + i - q.lead >= noted_) // not in a pass before
				NoteOther(*kernel_, i, run_);
			continue;
		}
		Line &line = lines_[same->connection];
		if (line.first >= 16 && line.first >= line.seen.size() / 2) {
			line.seen.erase(line.seen.begin(),
					line.seen.begin() + static_cast<ptrdiff_t>(line.first));
			line.first = 0;
		}
		const bool read = !q.read_ns.empty() && q.AnswerFits(i);
		line.seen.push_back(
		    {q.sent_ns[i], read ? q.read_ns[i] : 0, q.end_ns[i], static_cast<uint8_t>(q.Behind(i))});
		waiting_++;
	}
	noted_ = std::max(noted_, q.first + q.size() - q.lead);
}

// A load generator's log that has only slow requests leaves many of the kernel's without a match.
size_t KernelJoin::Prune()
{
	size_t waiting = 0;
	for (Line &line : lines_) {
		while (line.first < line.seen.size() && IsPast(line.seen[line.first].answered_ns))
			line.first++;
		line.seen.erase(line.seen.begin(), line.seen.begin() + static_cast<ptrdiff_t>(line.first));
		line.first = 0;
		waiting += line.seen.size();
	}
	return waiting;
}

// Both logs of one socket are in the same order: what was passed over is no later request's either.
bool KernelJoin::Find(const Requests &q, size_t i, Seen *seen)
{
	if (q.connection[i] >= lines_.size() || q.status[i] == FT_STATUS_UNSENT)
		return false;
	Line &line = lines_[q.connection[i]];
	while (line.first < line.seen.size() && line.seen[line.first].arrived_ns + bound_ns_ < q.sent_ns[i]) {
		line.first++;
		waiting_--;
	}
	if (line.first == line.seen.size() || line.seen[line.first].answered_ns > q.end_ns[i] + bound_ns_)
		return false;
	*seen = line.seen[line.first++];
	waiting_--;
	// Within the uncertainty of the clocks.
	seen->arrived_ns = std::clamp(seen->arrived_ns, q.sent_ns[i], q.end_ns[i]);
	seen->answered_ns = std::clamp(seen->answered_ns, seen->arrived_ns, q.end_ns[i]);
	if (seen->read_ns)
		seen->read_ns = std::clamp(seen->read_ns, seen->arrived_ns, seen->answered_ns);
	return true;
}

// A server behind a proxy becomes one of the run's with the first request that it answered.
uint8_t KernelJoin::BehindOf(uint8_t behind)
{
	if (!behind || behind > kernel_->behind.size())
		return 0;
	behind_.resize(kernel_->behind.size() + 1);
	uint8_t &mapped = behind_[behind];
	if (!mapped)
		mapped = AddBehind(kernel_->behind[behind - 1u], run_);
	return mapped;
}

void KernelJoin::Fill(Requests *q)
{
	for (size_t i = q->lead; i < q->size(); i++) {
		Seen seen = {};
		Reach(q->end_ns[i]);
		if (Find(*q, i, &seen) && HasBehind() && !q->behind[i])
			q->behind[i] = BehindOf(seen.behind);
		q->server_arrival_ns[i] = seen.arrived_ns;
		q->read_ns[i] = seen.read_ns;
		q->answered_ns[i] = seen.answered_ns;
	}
}

} // namespace forktail::analysis
