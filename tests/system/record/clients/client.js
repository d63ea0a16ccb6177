// SPDX-License-Identifier: MIT
// node-redis, which sends the commands of one turn of its event loop as a pipeline.
const { createClient } = require('redis');

(async () => {
	const c = createClient({ socket: { port: Number(process.argv[2]) } });
	await c.connect();
	for (let i = 0; i < 30; i++) {
		const all = [];
		for (let k = 0; k < 50; k++)
			all.push(c.set(`js${k}`, 'v'.repeat(k * 10)), c.get(`js${k}`));
		await Promise.all(all);
	}
	for (let i = 0; i < 100; i++)
		await c.hSet('jsh', `f${i}`, i);
	await c.multi().incr('jsn').get('jsn').exec();
	await c.quit();
})();
