// SPDX-License-Identifier: MIT
// Compares requests that the server's kernel saw with those of the load generator's logs, as the test
// record_requests does: compare_requests KERNEL-LOG LOAD-LOG... prints JSON.
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

Json Compared(const Log &load, const Log &kernel)
{
	const Agreement a = compare_requests(load, kernel);
	return {{"sent", load.requests.size()}, {"sockets", a.sockets},   {"seen", a.seen}, {"late", a.late},
		{"invented", a.invented},	{"missed", a.missed()}};
}

} // namespace

int main(int count, char **words)
try {
	if (count < 3)
		throw std::runtime_error("usage: compare_requests KERNEL-LOG LOAD-LOG...");
	const Log kernel = Read(words[1]);
	Json result = {{"note", requests_note(kernel)}, {"loads", Json::array()}};
	for (int i = 2; i < count; i++)
		result["loads"].push_back(Compared(Read(words[i]), kernel));
	std::cout << result.dump() << "\n";
	return 0;
} catch (const std::exception &why) {
	std::cerr << "compare_requests: " << why.what() << "\n";
	return 2;
}
