import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { existsSync } from 'node:fs'
import { Gate } from '../support/gate.ts'
import { startWorker, type WorkerConnection } from '../support/worker-process.ts'
import { run, SCRIPTED } from './scripted.ts'

let worker: WorkerConnection
let id = 0
beforeAll(async () => {
  worker = await startWorker(SCRIPTED)
})
afterAll(async () => {
  expect(await worker.close()).toBe(0)
})

/** Sends requests, each in a batch that begins after those before it. Returns their ids. */
function later(...codes: string[]): number[] {
  return codes.map((code) => {
    worker.send({ type: 'predict', requests: [run(++id, code)], after: true })
    return id
  })
}

/** Says its name in the log of the worker, in the order of the begins. */
const begin = (name: string): string => `(shared.begun ??= []).push('${name}'); `

async function begun(): Promise<string> {
  worker.predict(run(++id, `const begun = shared.begun ?? []; shared.begun = []; return [begun.join(' ')]`))
  return (await worker.answer(id)).items[0]!
}

/** Holds the event loop of the worker until the gate is open; there is a file `PATH.held` from then on. */
function hold(gate: Gate): string {
  return `
    shared.fs.writeFileSync(${JSON.stringify(`${gate.path}.held`)}, '')
    while (!shared.fs.existsSync(${JSON.stringify(gate.path)}));
    return ['']`
}

async function held(gate: Gate): Promise<void> {
  while (!existsSync(`${gate.path}.held`)) await new Promise((resolve) => setTimeout(resolve, 1))
}

/** What was sent has reached the kernel. */
async function sent(): Promise<void> {
  for (let turns = 0; turns < 2; turns += 1) await new Promise((resolve) => setImmediate(resolve))
  expect(worker.channel.unsentBytes).toBe(0)
}

test('a batch that comes later begins when the one before it has ended, one after the other', async () => {
  worker.predict(
    run(++id, `${begin('a')} await new Promise((resolve) => { shared.go = resolve }); return ['']`),
  )
  const ids = later(`${begin('b')} await send(['item']); return ['']`, `${begin('c')} return ['']`)
  await worker.ping()
  worker.predict(run(++id, `${begin('d')} shared.go(); return ['']`))
  for (const one of ids) await worker.answer(one)
  expect(await begun()).toBe('a d b c')
})

test('with nothing before it, such a batch begins at once', async () => {
  const [only] = later(`return ['at once']`)
  expect((await worker.answer(only!)).items).toEqual(['at once'])
})

test('a batch that is withdrawn is given back whole and never begins; one that has begun stays', async () => {
  const first = ++id
  worker.predict(
    run(first, `${begin('a')} await new Promise((resolve) => { shared.go = resolve }); return ['']`),
  )
  const pair = [run(++id, begin('b')), run(++id, begin('b'))]
  worker.send({ type: 'predict', requests: pair, after: true })
  const [last] = later(`${begin('c')} return ['']`)
  worker.send({ type: 'withdraw', ids: [first, pair[1]!.id] })
  expect((await worker.next('withdrawn')).ids).toEqual(pair.map((request) => request.id))
  worker.predict(run(++id, `shared.go(); return ['']`))
  await worker.answer(last!)
  expect(await begun()).toBe('a c')
})

test('a client that leaves while the batch before holds the event loop is heard before the begin', async () => {
  worker.predict(run(++id, `shared.fs = await import('node:fs'); return ['']`))
  await worker.answer(id)
  for (const together of [true, false]) {
    const gate = new Gate()
    const wait = together ? '' : `await new Promise((resolve) => setTimeout(resolve, 20));`
    worker.predict(run(++id, wait + hold(gate)))
    if (together) await held(gate)
    const [gone, last] = later(`${begin('gone')} return ['']`, `${begin('last')} return ['']`)
    if (!together) await held(gate)
    worker.send({ type: 'withdraw', ids: [gone!] })
    worker.send({ type: 'cancel', id: gone!, reason: 'client left' })
    await sent()
    gate.open()
    expect((await worker.answer(gone!)).error).toMatchObject({ code: 'CANCELLED' })
    await worker.answer(last!)
    expect(await begun()).toBe('last')
  }
})

test('the last response before a batch that ends the process has arrived', async () => {
  const other = await startWorker(SCRIPTED)
  other.predict(run(1, `return ['first']`))
  for (const k of [2, 3]) other.send({ type: 'predict', requests: [run(k, `return ['${k}']`)], after: true })
  other.send({ type: 'predict', requests: [run(4, `process.exit(3)`)], after: true })
  other.send({ type: 'predict', requests: [run(5, `return ['']`)], after: true })
  for (const k of [1, 2, 3]) await other.answer(k)
  expect(await other.process.exited).toBe(3)
  expect(
    other.received.filter((message) => 'id' in message).map((message) => 'id' in message && message.id),
  ).toEqual([1, 2, 3])
})

test('a worker that unloads gives back what waits, and finishes what runs', async () => {
  const other = await startWorker(SCRIPTED)
  other.predict(run(1, `await new Promise((resolve) => setTimeout(resolve, 50)); return ['done']`))
  other.send({ type: 'predict', requests: [run(2, `return ['']`)], after: true })
  other.send({ type: 'unload' })
  other.send({ type: 'predict', requests: [run(3, `return ['']`)], after: true })
  expect((await other.next('withdrawn')).ids).toEqual([2])
  expect((await other.next('withdrawn')).ids).toEqual([3])
  expect((await other.answer(1)).items).toEqual(['done'])
  expect(await other.process.exited).toBe(0)
})
