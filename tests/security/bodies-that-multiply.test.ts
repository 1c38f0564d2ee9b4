import { join } from 'node:path'
import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { StopFilter } from '../../common/openai/stop-filter.ts'
import { cpuMs } from '../support/cpu.ts'
import { peakBytes, residentBytes } from '../support/memory.ts'
import { rawRequest } from '../support/raw-http.ts'
import { REPOSITORY, startServer, type Server } from '../support/server.ts'
import { longestTurn, TURN_PROBE } from '../support/turns.ts'

const MAX_BYTES = 6_553_500
const MAX_TURN_MS = 200
const MIB = 1_048_576

let server: Server

beforeAll(async () => {
  server = await startServer({
    models: [`echo=${join(REPOSITORY, 'model-store', 'echo')}`],
    nodeArgs: TURN_PROBE,
  })
  await server.ready('echo')
})

beforeEach(async () => {
  await longestTurn(server)
  peakBytes(server.pid)
})

/** Sends it; the status and the message. The frontend may take a turn, and some times the body's bytes. */
async function cost(path: string, type: string, body: string): Promise<string> {
  const before = residentBytes(server.pid)
  const answer = await rawRequest(server.ports.inference, path, { body, headers: { 'content-type': type } })
  expect(await longestTurn(server)).toBeLessThan(MAX_TURN_MS)
  expect(peakBytes(server.pid) - before).toBeLessThan(100 * MIB)
  return `${answer.status} ${answer.body.slice(0, 300)}`
}

/** As much of it as a body may have, with room for the rest. */
function fill(text: string): string {
  return text.repeat(Math.floor((MAX_BYTES - 200) / text.length))
}

describe('a multipart body costs what its bytes cost', () => {
  const HEAD = '--B\r\nContent-Disposition: form-data; name="a"\r\n\r\n'

  test.each([
    [
      'of lines that begin like its boundary',
      `${HEAD}${fill('\r\n--B\r\r')}\r\n--B--\r\n`,
      /^400 .*10000 lines/s,
    ],
    ['of its boundary with a text behind', `${HEAD}${fill('\r\n--B-')}\r\n--B--\r\n`, /^400 .*10000 lines/s],
    ['of small parts', `${fill(`${HEAD}x\r\n`)}--B--\r\n`, /^400 .*at most 1024 inputs/s],
    ['of a padding without end', `${HEAD}x\r\n--B${fill(' ')}`, /^400 .*must end/s],
    ['of parts without headers', `${fill('--B\r\n\r\n\r\n')}--B--\r\n`, /^400 .*must have a header/s],
    ['of one header', `--B\r\n${fill('a')}`, /^400 .*(16384 bytes|must end)/s],
    ['of many headers', `--B\r\n${'a:b\r\n'.repeat(200)}\r\n\r\n--B--`, /^400 .*100 headers/s],
    ['of line ends', `${HEAD}${fill('\r\n')}\r\n--B--\r\n`, /^200 /],
  ])('%s', async (_what, body, answer) => {
    expect(await cost('/predictions/echo', 'multipart/form-data; boundary=B', body)).toMatch(answer)
  })

  test('of dashes, which are its boundary', async () => {
    expect(await cost('/predictions/echo', 'multipart/form-data; boundary=-', fill('-'))).toMatch(/^[24]00 /)
  })

  test('with a boundary of many characters is refused', async () => {
    const type = `multipart/form-data; boundary=${'b'.repeat(201)}`
    expect(await cost('/predictions/echo', type, '--')).toMatch(/^400 .*1 to 200 characters/s)
  })
})

describe('what a request to the OpenAI API names is not multiplied', () => {
  const completion = (more: object): Promise<string> =>
    cost('/v1/completions', 'application/json', JSON.stringify({ model: 'echo', prompt: 'x', ...more }))

  test('a stop text of more than 1,024 characters is refused', async () => {
    expect(await completion({ stop: ['ok', 's'.repeat(1_025)] })).toMatch(/^400 .*at most 1024 characters/)
    expect(await completion({ stop: ['ok', 's'.repeat(1_024)] })).toMatch(/^200 /)
  })

  test('16 stop texts that nearly occur everywhere cost no more than the text', async () => {
    const stop = 'b c d e f g h i j k l m n o p q'.split(' ').map((last) => 'a'.repeat(1_023) + last)
    expect(await completion({ prompt: `${'a'.repeat(300_000)}x`, stop })).toMatch(/^200 /)
  })

  test('128 choices of a large prompt, or of large other fields, are refused', async () => {
    expect(await completion({ prompt: fill('x'), n: 128 })).toMatch(/^413 .*choices of a request/)
    expect(await completion({ more: fill('x'), n: 128 })).toMatch(/^413 .*choices of a request/)
    expect(await completion({ prompt: 'x'.repeat(10_000), n: 20 })).toMatch(/^200 /)
  })
})

test('a stop filter compares each character a few times, in pieces of a character too', () => {
  const stop = `${'a'.repeat(300_000)}b`
  const whole = cpuMs(() => new StopFilter([stop]).push(`${'a'.repeat(300_000)}c`))
  const last = cpuMs(() => new StopFilter([`b${'a'.repeat(300_000)}`]).push('a'.repeat(600_000)))
  const pieces = cpuMs(() => {
    const filter = new StopFilter([`${'a'.repeat(1_000)}b`])
    for (let at = 0; at < 100_000; at += 1) filter.push(at % 1_000 === 999 ? 'c' : 'a')
  })
  expect(Math.max(whole, last, pieces)).toBeLessThan(2_000)
})
