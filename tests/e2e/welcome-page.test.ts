import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { rawRequest } from '../support/raw-http.ts'
import { ECHO } from '../support/count.ts'
import { startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { execa } from '../support/tools.ts'

const CHAT = `export const handle = (requests: unknown[]): string[] => requests.map(() => 'plain')
export async function* chatCompletions() {
  yield { choices: [{ delta: { role: 'assistant', content: 'Hello' } }] }
  yield { choices: [{ delta: {}, finish_reason: 'stop' }] }
}
`

/** A model for all APIs, as --models takes it. */
function chatFolder(): string {
  const folder = tempDir()
  writeFileSync(join(folder, 'handler.ts'), CHAT)
  return `chat=${folder}`
}

async function page(port: number): Promise<string> {
  const headers = { accept: 'text/html,*/*;q=0.8' }
  const { status, body } = await rawRequest(port, '/', { method: 'GET', headers })
  expect(status).toBe(200)
  return body
}

/** Command lines as a person copies them from the page. */
function commands(html: string): string[] {
  const text = [...html.matchAll(/<pre>([^]*?)<\/pre>/g)].map(([, lines]) => lines!).join('')
  return text
    .replaceAll('&quot;', '"')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&')
    .split('\n')
    .filter((line) => line !== '')
}

describe('a server without tokens', () => {
  let server: Server

  beforeAll(async () => {
    server = await startServer({ models: [ECHO, chatFolder()], config: { allowed_hosts: '*' } })
    for (const model of ['echo', 'chat']) await server.ready(model)
  })

  test('has a command line for each API of each model, and each is answered', async () => {
    const html = await page(server.ports.inference)
    const lines = commands(html)
    const urls = lines.map((line) => /http:\S+$/.exec(line)?.[0].replace(/^http:\/\/127\.0\.0\.1:\d+/, ''))
    expect(urls.sort()).toEqual([
      '/predictions/chat',
      '/predictions/echo',
      '/v1/chat/completions',
      '/v2/models/chat/generate',
    ])
    for (const line of lines) {
      const { stdout } = await execa('sh', [
        '-c',
        line.replace(/^curl /, 'curl -sS -o /dev/null -w "%{http_code}" '),
      ])
      expect(`${stdout} ${line}`).toMatch(/^200 /)
    }
    expect(html.match(/Version [\d.]+, ready/g)).toHaveLength(2)
  })

  test('names no models on the management port', async () => {
    expect(await page(server.ports.management)).not.toContain('<pre>')
  })

  test.each(['x"><script>alert(1)</script>', "a';touch$IFS/tmp/x;'", '$(id)', 'a&b', 'a'.repeat(400)])(
    'writes no more than a plain Host into the page: %s',
    async (host) => {
      const headers = { accept: 'text/html', host }
      const { status, body } = await rawRequest(server.ports.inference, '/', { method: 'GET', headers })
      // Others are refused, as pages of other sites are.
      if (status === 200) {
        expect(commands(body).every((line) => /http:\/\/HOST:PORT\/\S+$/.test(line))).toBe(true)
        expect(body).not.toContain(host)
      } else expect([400, 403]).toContain(status)
    },
  )

  test('tells programs where the description of the port is, with the status that TorchServe has', async () => {
    const { status, headers } = await rawRequest(server.ports.inference, '/', { method: 'GET' })
    expect([status, headers['x-hint']]).toEqual([405, expect.stringContaining('/api-description')])
  })
})

test('a server with tokens names no model, and says how to send a token', async () => {
  const server = await startServer({ models: [ECHO], flags: ['--enable-model-api'] })
  const html = await page(server.ports.inference)
  expect(html).not.toContain('echo')
  expect(commands(html)).toEqual([
    `curl -H 'Authorization: Bearer KEY' -d 'Once upon a time' http://127.0.0.1:${server.ports.inference}/predictions/MODEL`,
  ])
})
