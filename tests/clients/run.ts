/**
 * Real clients against a running server: `npm run test:clients [-- [--heavy] PROGRAM...]`. They are installed
 * into .build once. One line per check; then the programs that were left out because they are heavy, and `N
 * passed, N failed`.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { freePorts } from '../../examples/demo/free-ports.ts'
import { DemoServer } from '../../examples/demo/server.ts'
import { install } from './install.ts'
import { runProgram, type Counts } from './program.ts'
import { PROGRAMS, type Program } from './programs.ts'
import { makeStore, STORE } from './store.ts'

const START_LIMIT_MS = 120_000

async function main(programs: readonly Program[], counts: Counts): Promise<void> {
  for (const environment of new Set(programs.map((each) => each.environment))) await install(environment)
  const folder = await mkdtemp(join(tmpdir(), 'torchserve-ts-clients-'))
  try {
    const store = join(folder, 'store')
    await makeStore(store)
    const [mlserver, triton] = await freePorts(2)
    const signal = AbortSignal.timeout(START_LIMIT_MS)
    const config = {
      open_inference_grpc_port: mlserver!,
      triton_grpc_port: triton!,
      enable_model_api: true,
      // The paths that TorchServe shares with the protocol have the protocol's meaning.
      ts_open_inference_protocol: true,
    }
    const server = await DemoServer.start({ modelStore: store, models: [...STORE], config, signal })
    try {
      for (const model of STORE) await server.modelReady(model, signal)
      const targets = {
        REST_URL: `http://127.0.0.1:${server.inferencePort}`,
        MANAGEMENT_URL: `http://127.0.0.1:${server.managementPort}`,
        MLSERVER_TARGET: `127.0.0.1:${mlserver!}`,
        TRITON_TARGET: `127.0.0.1:${triton!}`,
      }
      for (const program of programs) await runProgram(program, targets, counts)
    } finally {
      await server.stop()
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const counts: Counts = { passed: 0, failed: 0 }
const { values, positionals } = parseArgs({ allowPositionals: true, options: { heavy: { type: 'boolean' } } })
const wanted = PROGRAMS.filter(
  ({ file }) => positionals.length === 0 || positionals.some((word) => file.includes(word)),
)
const programs = wanted.filter(({ heavy = false }) => values.heavy === true || !heavy)
try {
  await main(programs, counts)
} catch (error) {
  counts.failed += 1
  console.log(`FAILED the run: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
}
for (const { file } of wanted.filter((each) => !programs.includes(each)))
  console.log(`left out ${file}: runs with --heavy`)
console.log(`${counts.passed} passed, ${counts.failed} failed`)
process.exitCode = counts.failed === 0 && counts.passed > 0 ? 0 : 1
