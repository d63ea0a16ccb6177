// SPDX-License-Identifier: MIT
// See requests.h. Per request: its connection by number, its row by server, its total by command. Names are
// only compared when one of these is new.
#include "state.h"

#include <algorithm>

namespace forktail::live
{

namespace
{

constexpr size_t kConnections = 65'536;	 // the recorder follows as many
constexpr size_t kMostWaiting = 262'144; // connections are written twice a second
constexpr uint64_t kWaitNs = 3 * kSecondNs;
// Requests are written within a second of their end.
constexpr uint64_t kRecentNs = 10 * kSecondNs;
constexpr char kOther[] = "other";

Outcome OutcomeOf(uint8_t status)
{
	return status == FT_STATUS_OK	  ? Outcome::Ok
	       : status == FT_STATUS_MISS ? Outcome::Miss
					  : Outcome::Error;
}

uint32_t RowOf(uint32_t server)
{
	return std::min(server, kMostRequestServers);
}

} // namespace

void Requests::UseServers(const common::Json &lists)
{
	server_pids_.clear();
	const common::Json *infos = common::Member(lists, "server_info");
	if (infos && infos->is_array())
		for (const common::Json &info : *infos)
			server_pids_.push_back(static_cast<uint32_t>(common::Whole(info, "pid")));
}

void Requests::Slice(uint64_t t_ns, bool on)
{
	if (on && !on_since_ns_)
		on_since_ns_ = t_ns;
	if (!on)
		recorded_ns_ = recorded_ns(t_ns), on_since_ns_ = 0;
}

uint64_t Requests::recorded_ns(uint64_t newest_ns) const
{
	return recorded_ns_ + (on_since_ns_ && newest_ns > on_since_ns_ ? newest_ns - on_since_ns_ : 0);
}

void Requests::Sample(uint64_t t_ns, uint32_t sample)
{
	first_sample_ = sample_;
	sample_ = std::clamp<uint32_t>(sample, 1, UINT16_MAX);
	since_ns_ = t_ns;
}

void Requests::Manifest(const common::Json &manifest, bool another, uint64_t newest_ns)
{
	GiveUp(); // their operations are those of the previous file
	if (another) {
		connections_.clear();
		Slice(newest_ns, false);
	}
	const common::Json *about = common::Member(manifest, "requests");
	const bool kernel = about && common::Text(*about, "source") == "kernel";
	sample_ =
	    kernel
		? static_cast<uint32_t>(std::clamp<uint64_t>(common::Whole(*about, "sample"), 1, UINT16_MAX))
		: 0;
	since_ns_ = 0;
	if (!sample_)
		return;
	Slice(common::Whole(manifest, "start_ns"), common::Flag(*about, "on"));
	ops_ = common::Texts(manifest, "ops");
	rows_.clear();
	UseServers(manifest);
	for (Known &c : connections_)
		c.server = kNone;
}

void Requests::Connection(const ft_connection &c)
{
	if (!sample_ || !c.id)
		return;
	const size_t place = c.id % kConnections;
	if (place >= connections_.size())
		connections_.resize(std::min(kConnections, std::max(place + 1, 2 * connections_.size())));
	connections_[place] = {.id = c.id, .listed = c.server, .client = ClientOf(c)};
}

Requests::Known *Requests::Find(uint32_t id)
{
	const size_t place = id % kConnections;
	return place < connections_.size() && connections_[place].id == id ? &connections_[place] : nullptr;
}

uint32_t Requests::ServerOf(Known *c) const
{
	if (c->server == kNone && c->listed < server_pids_.size())
		c->server = servers_->Known(server_pids_[c->listed]);
	return c->server;
}

bool Requests::Decode(const ft_block &block)
{
	if (!sample_)
		return false;
	start_ns_.resize(FT_REQUEST_BLOCK);
	end_ns_.resize(FT_REQUEST_BLOCK);
	connection_.resize(FT_REQUEST_BLOCK);
	op_.resize(FT_REQUEST_BLOCK);
	status_.resize(FT_REQUEST_BLOCK);
	ft_request_columns columns = {};
	columns.start_ns = start_ns_.data();
	columns.end_ns = end_ns_.data();
	columns.connection = connection_.data();
	columns.op = op_.data();
	columns.status = status_.data();
	const int count = ft_requests_decode(block.payload, block.bytes, block.count, &columns);
	count_ = count > 0 ? static_cast<uint32_t>(count) : 0;
	latest_ns_ = count_ ? *std::max_element(end_ns_.begin(), end_ns_.begin() + count_) : 0;
	return count_;
}

uint32_t Requests::TotalsOf(uint32_t server, uint8_t op, Outcome outcome)
{
	constexpr Indexes none = {kNone, kNone, kNone};
	if (rows_.empty()) {
		rows_.resize(kMostRequestServers + 1);
		for (Row &row : rows_)
			row.fill(none);
	}
	const uint32_t row = RowOf(server);
	const auto column = static_cast<size_t>(outcome);
	uint32_t &at = rows_[row][op][column];
	if (at != kNone)
		return at;
	std::string command = op < ops_.size() ? ops_[op] : kOther;
	size_t &commands = commands_[row];
	if (!by_name_.count({row, command}) && commands >= kMostCommands)
		command = kOther;
	auto [found, is_new] = by_name_.try_emplace({row, command}, none);
	commands += is_new;
	uint32_t &known = found->second[column];
	if (known == kNone) {
		known = static_cast<uint32_t>(totals_.size());
		totals_.push_back({row == kMostRequestServers ? kNone : server, command, outcome, {}});
	}
	return at = known;
}

ClientTotals &Requests::ClientTotalsOf(uint32_t server, Known *c)
{
	if (c && c->totals != kNone && client_totals_[c->totals].server == server)
		return client_totals_[c->totals];
	std::pair<uint32_t, std::string> key = {server, c ? c->client.Name() : kOther};
	if (!by_client_.count(key) && by_client_.size() >= kMostClientTotals)
		key = {kNone, kOther};
	const auto [found, is_new] = by_client_.try_emplace(key, client_totals_.size());
	if (is_new)
		client_totals_.push_back({key.first, key.second});
	if (c)
		c->totals = found->second;
	return client_totals_[found->second];
}

uint32_t Requests::SecondAt(uint64_t start_ns, uint32_t server, Batch *batch)
{
	for (size_t i = batch->requests.size(); i-- > 0;)
		if (batch->requests[i].start_ns == start_ns && batch->requests[i].server == server)
			return static_cast<uint32_t>(i);
	RequestSecond second;
	second.start_ns = start_ns;
	second.server = server;
	second.sample = SampleAt(start_ns);
	batch->requests.push_back(std::move(second));
	clients_.emplace_back();
	return static_cast<uint32_t>(batch->requests.size() - 1);
}

uint32_t Requests::ClientAt(uint32_t second, const live::Client &client, Batch *batch)
{
	std::vector<RequestSecond::OfClient> &all = batch->requests[second].clients;
	auto known = clients_[second].find(client);
	if (known != clients_[second].end())
		return known->second;
	if (all.size() >= kMostClients && client.kind != live::Client::Kind::Other)
		return ClientAt(second, {}, batch);
	all.push_back({client});
	return clients_[second][client] = static_cast<uint32_t>(all.size() - 1);
}

void Requests::AddToSecond(const One &one, Known *c, Batch *batch)
{
	const uint64_t start_ns = one.end_ns / kSecondNs * kSecondNs;
	if (c->poll != poll_ || batch->requests[c->second].start_ns != start_ns ||
	    batch->requests[c->second].server != c->server) {
		c->second = SecondAt(start_ns, c->server, batch);
		c->of_client = ClientAt(c->second, c->client, batch);
		c->poll = poll_;
	}
	RequestSecond &second = batch->requests[c->second];
	second.times.Add(one.ns);
	RequestSecond::OfClient &client = second.clients[c->of_client];
	client.count++;
	client.sum_ns += one.ns;
	client.max_ns = std::max(client.max_ns, one.ns);
}

// Without a connection it is a request of another server's.
void Requests::Add(const One &one, Known *c, uint64_t newest_ns, Batch *batch)
{
	const uint32_t server = c ? ServerOf(c) : kNone;
	const uint32_t sample = SampleAt(one.end_ns);
	totals_[TotalsOf(server, one.op, one.outcome)].times.Add(one.ns, sample);
	ClientTotals &client = ClientTotalsOf(server, c);
	client.count += sample;
	client.sum_ns += one.ns * sample;
	if (server != kNone && batch && one.end_ns <= newest_ns && newest_ns - one.end_ns < kRecentNs)
		AddToSecond(one, c, batch);
}

void Requests::GiveUp()
{
	for (const One &one : waiting_)
		Add(one, Find(one.connection), 0, nullptr);
	waiting_.clear();
}

void Requests::Count(uint64_t newest_ns, Batch *batch)
{
	for (uint32_t i = 0; i < count_; i++) {
		const uint64_t ns = end_ns_[i] - std::min(start_ns_[i], end_ns_[i]);
		const One one = {end_ns_[i], ns, connection_[i], op_[i], OutcomeOf(status_[i])};
		Known *c = Find(one.connection);
		if (!c && waiting_.size() < kMostWaiting)
			waiting_.push_back(one);
		else
			Add(one, c, newest_ns, batch);
	}
	count_ = 0;
}

void Requests::Settle(uint64_t newest_ns, Batch *batch)
{
	std::erase_if(waiting_, [&](const One &one) {
		Known *c = Find(one.connection);
		const bool late = one.end_ns + kWaitNs < newest_ns;
		if (c || late)
			Add(one, c, newest_ns, batch);
		return c || late;
	});
}

void Requests::EndPoll()
{
	clients_.clear();
	poll_++;
}

} // namespace forktail::live
