// SPDX-License-Identifier: MIT
// Starts a server on a Unix socket or a free port of 127.0.0.1. If another process takes the port before the
// server binds it, another port is tried.
#pragma once

#include <functional>
#include <string>

#include "lab/host/session.h"

namespace forktail::lab
{

// The address of a server: a socket's path, or a port of 127.0.0.1.
struct Endpoint {
	std::string socket;	     // "" with TCP
	int port = 0;		     // 0 with a Unix socket
	std::string Address() const; // the path, or "127.0.0.1:7001"
};

// A free port below 22768 whose port + 10000, the cluster bus port, is free as well. Both are below the
// kernel's client ports (32768 and up by default), so no load's connection takes them. 0: none.
int FreePort();

// Starts a server on `socket`, or on a port if that is empty, and waits until it listens. `command` returns
// the command for each attempt. The child becomes `needed`. False: *error is one sentence.
bool StartListening(Session *session, const std::string &socket,
		    const std::function<Command(const Endpoint &)> &command, double seconds,
		    Endpoint *endpoint, Child **child, std::string *error);

// Connects to it: a non-blocking descriptor, or -1 and errno.
int ConnectTo(const Endpoint &endpoint);

// An on_line function that appends lines to a file.
std::function<void(const std::string &)> AppendTo(const std::string &file);

// Polls `look` every 20 ms until it is true or fails. `late` is the error text after the time limit.
using Look = std::function<bool(bool *yes, std::string *error)>;
bool Await(Session *session, double seconds, const std::string &late, const Look &look, std::string *error);

} // namespace forktail::lab
