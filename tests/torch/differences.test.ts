import { beforeAll, expect, test } from '@jest/globals'
import {
  packDifferences,
  readDifferences,
  recordDifferences,
  seeDifferences,
} from '../support/python/differences.ts'
import { standInPython } from '../support/python/environments.ts'
import { Peer, type Seen } from '../support/python/peer.ts'
import { hasJava, TorchServe } from '../support/python/torchserve.ts'
import { tempDir } from '../support/temp.ts'

const python = await standInPython()
const runs = python !== undefined && (await hasJava()) ? test : test.skip

/** UPDATE_RECORDING=1 records it again; tests/python/differences.test.ts compares this server with it. */
let seen: ReadonlyMap<string, Seen>

beforeAll(async () => {
  if (runs !== test) return
  const [store, other] = [tempDir(), tempDir()]
  await packDifferences(python!, store, other)
  const torchserve = await TorchServe.start(python!, store, tempDir(), [])
  try {
    seen = await seeDifferences(new Peer(torchserve.ports))
  } finally {
    await torchserve.stop()
  }
  recordDifferences('torchserve', seen)
}, 600_000)

runs('TorchServe is, row by row, as it was recorded', () => {
  const recorded = Object.entries(readDifferences()).map(([key, { torchserve }]) => [key, torchserve])
  expect([...seen]).toEqual(recorded)
})
