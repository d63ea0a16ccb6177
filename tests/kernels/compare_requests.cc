// SPDX-License-Identifier: MIT
// Compares requests that the server's kernel saw with those of the load generator's logs, as
// tests/system/record/test_requests.py does: compare_requests KERNEL-LOG LOAD-LOG... prints JSON. The
// kernel's log is a file, or the directory of a ring, which has the requests of slices of the time.
#include <filesystem>
#include <iostream>
#include <stdexcept>

#include "tests/system/record/requests.h"

using namespace forktail::test;

namespace
{

Log Read(const std::string &path)
{
	Log log = read_log(path);
	if (!log.whole())
		throw std::runtime_error(path + ": " + (log.error.empty() ? "damaged" : log.error));
	return log;
}

Log ReadRing(const std::string &directory)
{
	Log all;
	std::set<std::string> segments;
	for (const auto &entry : std::filesystem::directory_iterator(directory))
		if (entry.path().extension() == ".forktail")
			segments.insert(entry.path());
	for (const std::string &path : segments) {
		const Log one = Read(path);
		all.manifest = one.manifest;
		all.requests.insert(all.requests.end(), one.requests.begin(), one.requests.end());
		all.sockets.insert(one.sockets.begin(), one.sockets.end());
		all.notes.insert(all.notes.end(), one.notes.begin(), one.notes.end());
	}
	return all;
}

// Compares what a slice has of a connection with what was sent between its first and its last request.
// Returns the number of slices: between two of them requests were sent that are in neither.
size_t CompareSlices(const std::vector<NamedRequest> &sent, const std::vector<NamedRequest> &seen,
		     Agreement *a)
{
	const uint64_t apart_ns = 1'000'000'000;	// requests of a slice are closer to each other
	const auto after = [&](const NamedRequest &q) { // behind the last one sent before q arrived
		return std::upper_bound(sent.begin(), sent.end(), q.start_ns,
					[](uint64_t t, const NamedRequest &r) { return t < r.start_ns; });
	};
	size_t slices = 0;
	auto behind = sent.begin();
	for (auto first = seen.begin(); first != seen.end();) {
		auto end = first + 1;
		while (end != seen.end() && end->start_ns - (end - 1)->start_ns < apart_ns)
			++end;
		auto from = after(*first);
		from -= from != sent.begin();
		slices += slices == 0 || from > behind;
		behind = after(*(end - 1));
		const std::vector<NamedRequest> slice(from, behind);
		a->sent += slice.size();
		a->seen += static_cast<size_t>(end - first);
		compare_socket(slice, {first, end}, a);
		first = end;
	}
	return slices;
}

Json Compared(const Log &load, const Log &kernel, bool sliced)
{
	Agreement a;
	size_t slices = 1, sent = load.requests.size();
	if (sliced) {
		slices = SIZE_MAX;
		for (const auto &[all, seen] : sent_and_seen(load, kernel)) {
			slices = std::min(slices, CompareSlices(all, seen, &a));
			a.sockets++;
		}
		sent = a.sent;
	} else {
		a = compare_requests(load, kernel);
	}
	return {{"sent", sent},	  {"sockets", a.sockets},   {"seen", a.seen},	   {"slices", slices},
		{"late", a.late}, {"invented", a.invented}, {"missed", a.missed()}};
}

} // namespace

int main(int count, char **words)
try {
	if (count < 3)
		throw std::runtime_error("usage: compare_requests KERNEL-LOG LOAD-LOG...");
	const bool sliced = std::filesystem::is_directory(words[1]);
	const Log kernel = sliced ? ReadRing(words[1]) : Read(words[1]);
	Json result = {{"note", requests_note(kernel)}, {"loads", Json::array()}};
	for (int i = 2; i < count; i++)
		result["loads"].push_back(Compared(Read(words[i]), kernel, sliced));
	std::cout << result.dump() << "\n";
	return 0;
} catch (const std::exception &why) {
	std::cerr << "compare_requests: " << why.what() << "\n";
	return 2;
}
