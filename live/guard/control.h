// SPDX-License-Identifier: MIT
// The server side of the control socket (client: control_client): accepts names of triggers from any process
// that may open it. Lines are short, a connection lasts at most two seconds, and at most 16 are open at a
// time, so callers cannot block the guard.
#pragma once

#include <functional>
#include <string>
#include <sys/types.h>

struct event_base;
struct evconnlistener;

namespace forktail::live::guard
{

// Returns whether the request is accepted; *answer is one sentence.
using RequestHandler = std::function<bool(const std::string &name, std::string *answer)>;

class Control
{
public:
	Control() = default;
	~Control();
	Control(const Control &) = delete;
	Control &operator=(const Control &) = delete;

	// Listens on `path` and replaces the socket of a guard that ended. False: *error is one sentence.
	bool Listen(struct event_base *base, const std::string &path, RequestHandler handler,
		    std::string *error);

private:
	friend struct Caller;
	::evconnlistener *listener_ = nullptr;
	ino_t inode_ = 0; // of the socket
	std::string path_;
	RequestHandler handler_;
	int callers_ = 0;
};

} // namespace forktail::live::guard
