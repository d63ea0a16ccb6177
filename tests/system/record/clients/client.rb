# SPDX-License-Identifier: MIT
# redis-rb: single commands, pipelines, transactions, threads with a connection each.
require 'redis'

port = ARGV[0].to_i
threads = (0...5).map do |t|
  Thread.new do
    r = Redis.new(port: port)
    100.times do |i|
      r.set("rb#{t}", 'v' * i)
      r.get("rb#{t}")
    end
    r.pipelined { |p| 100.times { |i| p.lpush("rblist#{t}", i) } }
    r.multi { |m| 10.times { m.incr('rbn') } }
    r.lrange("rblist#{t}", 0, -1)
    r.close
  end
end
threads.each(&:join)
