<?php
// SPDX-License-Identifier: MIT
// phpredis: single commands, a pipeline, a transaction, and a new connection for each request.
$port = (int)$argv[1];
$r = new Redis();
$r->connect('127.0.0.1', $port);
for ($i = 0; $i < 300; $i++) {
    $r->set("php$i", str_repeat('v', $i));
    $r->get("php$i");
    $r->incr('phpn');
}
$r->multi(Redis::PIPELINE);
for ($i = 0; $i < 200; $i++) {
    $r->set("php$i", $i)->get("php$i");
}
$r->exec();
$r->multi()->incr('phpn')->incr('phpn')->exec();
$r->close();
for ($i = 0; $i < 200; $i++) {
    $one = new Redis();
    $one->connect('127.0.0.1', $port);
    $one->get('php1');
    $one->close();
}
