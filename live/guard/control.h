// SPDX-License-Identifier: MIT
// The control socket's other end (control_client): takes names of triggers from whoever may open it. A caller
// can't say more than a name, nor make the guard wait: a line is short, a connection lasts two seconds at
// most, and there are no more of them at a time than a hand can count.
#pragma once

#include <functional>
#include <string>

struct event_base;
struct evconnlistener;

namespace forktail::live::guard
{

// Whether it is done, and one sentence about it.
using OnAsked = std::function<bool(const std::string &name, std::string *answer)>;

class Control
{
public:
	Control() = default;
	~Control();
	Control(const Control &) = delete;
	Control &operator=(const Control &) = delete;

	// Listens at `path`, in the place of a guard that is no more. False: *error is one sentence.
	bool Listen(struct event_base *base, const std::string &path, OnAsked asked, std::string *error);

private:
	friend struct Caller;
	::evconnlistener *listener_ = nullptr;
	std::string path_;
	OnAsked asked_;
	int callers_ = 0;
};

} // namespace forktail::live::guard
