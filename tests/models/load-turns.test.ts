import { expect, test } from '@jest/globals'
import { LoadTurns } from '../../frontend/models/repository.ts'
import { heldBack } from '../support/held.ts'

function rig() {
  const turns = new LoadTurns()
  const begun: string[] = []
  /** Work that begins when its turn comes, and ends when the test says so. */
  const work = (name: string, fails = false) => {
    const held = heldBack()
    const run = async (): Promise<void> => {
      begun.push(name)
      await held.opened
      if (fails) throw new Error(name)
    }
    return { run, end: held.open }
  }
  return { turns, begun, work }
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('loads that come while one runs are one, which begins afterwards', async () => {
  const { turns, begun, work } = rig()
  const [first, second, third] = [work('first'), work('second'), work('third')]
  const running = turns.load('m', first.run)
  await settled()
  const waiting = [turns.load('m', second.run), turns.load('m', third.run)]
  await settled()
  expect(begun).toEqual(['first'])
  first.end()
  second.end()
  await Promise.all([running, ...waiting])
  expect(begun).toEqual(['first', 'second'])
})

test('a load that comes while the second of two runs waits for that one, though the first has ended', async () => {
  const { turns, begun, work } = rig()
  const all = ['first', 'second', 'third'].map((name) => work(name))
  const first = turns.load('m', all[0]!.run)
  await settled()
  const second = turns.load('m', all[1]!.run)
  all[0]!.end()
  await first
  await settled()
  const third = turns.load('m', all[2]!.run)
  await settled()
  expect(begun).toEqual(['first', 'second'])
  for (const each of all) each.end()
  await Promise.all([second, third])
  expect(begun).toEqual(['first', 'second', 'third'])
})

test('an unload comes after the loads before it, and before those after it', async () => {
  const { turns, begun, work } = rig()
  const all = ['load', 'unload', 'again'].map((name) => work(name))
  const ended = [turns.load('m', all[0]!.run), turns.unload('m', all[1]!.run), turns.load('m', all[2]!.run)]
  for (const [index, each] of all.entries()) {
    await settled()
    expect(begun).toHaveLength(index + 1)
    each.end()
  }
  await Promise.all(ended)
  expect(begun).toEqual(['load', 'unload', 'again'])
})

test('a failure is that of its own callers, and other names wait for nothing', async () => {
  const { turns, begun, work } = rig()
  const [failing, next, other] = [work('failing', true), work('next'), work('other')]
  const failed = turns.load('m', failing.run)
  await settled()
  const [after, beside] = [turns.load('m', next.run), turns.load('n', other.run)]
  await settled()
  expect(begun).toEqual(['failing', 'other'])
  failing.end()
  await expect(failed).rejects.toThrow('failing')
  next.end()
  other.end()
  await Promise.all([after, beside])
})
