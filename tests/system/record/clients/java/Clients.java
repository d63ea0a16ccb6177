// SPDX-License-Identifier: MIT
// Jedis: single commands, a pipeline, a transaction, a pool of threads. Lettuce: all threads share one connection, on which
// it sends without waiting for answers.
import io.lettuce.core.LettuceFutures;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.api.StatefulRedisConnection;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPool;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.Transaction;

public class Clients {
	static void inThreads(Runnable work) throws InterruptedException {
		List<Thread> threads = new ArrayList<>();
		for (int t = 0; t < 5; t++) {
			threads.add(new Thread(work));
		}
		for (Thread t : threads) {
			t.start();
		}
		for (Thread t : threads) {
			t.join();
		}
	}

	static void jedis(int port) throws InterruptedException {
		try (JedisPool pool = new JedisPool("127.0.0.1", port)) {
			inThreads(() -> {
				try (Jedis j = pool.getResource()) {
					for (int i = 0; i < 200; i++) {
						j.set("jedis" + i, "v".repeat(i));
						j.get("jedis" + i);
					}
					Pipeline p = j.pipelined();
					for (int i = 0; i < 100; i++) {
						p.lpush("jedislist", "v" + i);
					}
					p.sync();
					Transaction t = j.multi();
					t.incr("jedisn");
					t.get("jedisn");
					t.exec();
				}
			});
		}
	}

	static void lettuce(int port) throws InterruptedException {
		RedisClient client = RedisClient.create("redis://127.0.0.1:" + port);
		try (StatefulRedisConnection<String, String> connection = client.connect()) {
			inThreads(() -> {
				List<RedisFuture<?>> all = new ArrayList<>();
				for (int i = 0; i < 200; i++) {
					all.add(connection.async().set("lettuce" + i, "v".repeat(i)));
					all.add(connection.async().get("lettuce" + i));
					all.add(connection.async().hset("lettuceh", "f" + i, "v"));
				}
				if (!LettuceFutures.awaitAll(30, TimeUnit.SECONDS, all.toArray(new RedisFuture[0]))) {
					System.exit(1);
				}
			});
			for (int i = 0; i < 100; i++) {
				connection.sync().incr("lettucen");
			}
		}
		client.shutdown();
	}

	public static void main(String[] args) throws InterruptedException {
		int port = Integer.parseInt(args[0]);
		jedis(port);
		lettuce(port);
	}
}
