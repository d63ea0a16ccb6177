// SPDX-License-Identifier: MIT
// Starting a server where nobody else listens: on a Unix socket, or on a port of 127.0.0.1 that is free when
// it is chosen. Another process may take that port until the server binds it; the server is then started on
// another.
#pragma once

#include <functional>
#include <string>

#include "lab/host/session.h"

namespace forktail::lab
{

// Where a server listens: a socket's path, or a port of 127.0.0.1.
struct Endpoint {
	std::string socket;	     // "" with TCP
	int port = 0;		     // 0 with a Unix socket
	std::string Address() const; // the path, or "127.0.0.1:7001"
};

// A free port below 22768, for which the port 10000 above it is free as well: a Cluster's node talks to the
// others there. Both lie below the ports that the kernel gives to clients (by default 32768 and up), so that
// no load's connections take it. 0: there is none.
int FreePort();

// Starts a server that listens on `socket`, or if that is empty on a port, and waits until it does. `command`
// says how to start it there, each time it is tried. The child is `needed` then. False: *error is one
// sentence.
bool StartListening(Session *session, const std::string &socket,
		    const std::function<Command(const Endpoint &)> &command, double seconds,
		    Endpoint *endpoint, Child **child, std::string *error);

// A connection to it, or -1 and errno. On this host that takes no time; reading and writing don't wait.
int ConnectTo(const Endpoint &endpoint);

// A reader of lines of standard error that appends them to a file.
std::function<void(const std::string &)> AppendTo(const std::string &file);

// Looks every 20 ms until `look` says so, or can't say. `late` is the sentence when that takes too long.
using Look = std::function<bool(bool *yes, std::string *error)>;
bool Await(Session *session, double seconds, const std::string &late, const Look &look, std::string *error);

} // namespace forktail::lab
