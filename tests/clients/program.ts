import { join } from 'node:path'
import { folderOf, interpreterOf } from './install.ts'
import { PROGRAMS } from './places.ts'
import type { Program } from './programs.ts'
import { execa } from '../support/tools.ts'

const LIMIT_MS = 240_000

export interface Counts {
  passed: number
  failed: number
}

/** What every client program finds in its environment. */
export interface Targets {
  /** `http://127.0.0.1:PORT` */
  readonly REST_URL: string
  readonly MANAGEMENT_URL: string
  /** `127.0.0.1:PORT` of the listener with MLServer's streams. */
  readonly MLSERVER_TARGET: string
  /** The same with Triton's. */
  readonly TRITON_TARGET: string
}

/** So that clients ask no other server: no tokenizers, prices, versions, statistics of use. */
const OFFLINE = {
  DO_NOT_TRACK: '1',
  HAYSTACK_TELEMETRY_ENABLED: 'False',
  HF_DATASETS_DISABLE_PROGRESS_BARS: '1',
  HF_HUB_OFFLINE: '1',
  LITELLM_LOCAL_MODEL_COST_MAP: 'True',
  PROMPTFOO_DISABLE_TELEMETRY: '1',
  PROMPTFOO_DISABLE_UPDATE: '1',
  TQDM_DISABLE: '1',
}

/**
 * Runs a client program in a process of its own, because the stubs of tritonclient, kserve and MLServer
 * conflict. It prints `ok NAME` or `FAILED NAME` per check, details indented, and `DONE`. A missing `DONE`,
 * or no check at all, is a failure too.
 */
export async function runProgram(program: Program, targets: Targets, counts: Counts): Promise<void> {
  const { file, environment } = program
  const folder = folderOf(environment.name)
  const running = execa(interpreterOf(environment), [join(PROGRAMS, file)], {
    all: true,
    buffer: false,
    env: {
      ...targets,
      ...OFFLINE,
      ENVIRONMENT: folder,
      PYTHONUNBUFFERED: '1',
      PYTHONDONTWRITEBYTECODE: '1',
    },
    reject: false,
    stdin: 'ignore',
    timeout: LIMIT_MS,
    forceKillAfterDelay: 2_000,
  })
  console.log(`== ${file}`)
  let checks = 0
  let done = false
  for await (const line of running.iterable({ from: 'all' })) {
    if (line === 'DONE') {
      done = true
      continue
    }
    console.log(line)
    if (/^(ok|FAILED) /.test(line)) {
      checks += 1
      counts[line.startsWith('ok') ? 'passed' : 'failed'] += 1
    }
  }
  const { exitCode, timedOut } = await running
  if (done && checks > 0) return
  counts.failed += 1
  const how = timedOut ? `was ended after ${LIMIT_MS} ms` : `ended with ${exitCode ?? 'a signal'}`
  console.log(`FAILED ${file} runs to its end: it ${how} after ${checks} checks`)
}
