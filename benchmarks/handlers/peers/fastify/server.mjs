/**
 * The benchmark's handlers behind Fastify and piscina. Argument: JSON settings. Resolves packages from its
 * folder.
 */
import { Readable } from 'node:stream'
import { MessageChannel } from 'node:worker_threads'
import Fastify from 'fastify'
import { Piscina } from 'piscina'

const { port, fastify, piscina } = JSON.parse(process.argv[2])
const pool = new Piscina({ filename: new URL('worker.mjs', import.meta.url).href, ...piscina })
const app = Fastify(fastify)

app.addContentTypeParser('application/octet-stream', { parseAs: 'buffer' }, (_request, body, done) => {
  done(null, body)
})
app.get('/ready', () => 'ready')
app.post('/echo', async (request, reply) => {
  reply.type('application/octet-stream')
  return Buffer.from(await pool.run(request.body, { name: 'echo' }))
})
for (const [path, name] of [
  ['/hundred', 'hundred'],
  ['/timed', 'timed'],
  ['/idle', 'timed'],
]) {
  app.post(path, (request, reply) => {
    const { port1, port2 } = new MessageChannel()
    const items = new Readable({
      read: () => undefined,
      destroy: (error, done) => (port1.close(), done(error)),
    })
    port1.on('message', (item) => items.push(item))
    pool
      .run({ body: request.body, port: port2 }, { name, transferList: [port2] })
      .catch((error) => items.destroy(error))
    return reply.type('application/octet-stream').send(items)
  })
}

await app.listen({ host: '127.0.0.1', port })
process.stdout.write('listening\n')
