import { performance } from 'node:perf_hooks'
import { ECHO, ECHO_BODY } from '../ceilings/workload.ts'
import type { Options } from '../options.ts'
import { Service } from '../processes.ts'
import { median } from '../statistics.ts'
import { oursCommand } from '../targets/ours.ts'
import { postAndRead } from '../wire.ts'
import type { Figure } from './figure.ts'
import { pause } from './figure.ts'

const POLL_MS = 10

/** Time from the start of the CLI's process to the first answer of `echo`. */
export async function measureStart(options: Options): Promise<Figure[]> {
  const milliseconds: number[] = []
  for (let i = 0; i < options.repeats + 2; i++) milliseconds.push(await once())
  const name = 'CLI exec to the first echo answer'
  return [
    {
      measure: 'start',
      name: `${name}, median of ${milliseconds.length}`,
      value: median(milliseconds),
      unit: 'ms',
      atMost: 1500,
    },
    { measure: 'start', name: `${name}, slowest`, value: Math.max(...milliseconds), unit: 'ms' },
  ]
}

async function once(): Promise<number> {
  const command = await oursCommand({ models: [ECHO] })
  const begin = performance.now()
  const starting = Service.start(command.args, /Model server started\./, command)
  const [taken, [service]] = await Promise.all([
    firstAnswer(`${command.restOrigin}/predictions/${ECHO}`, begin),
    starting,
  ])
  await service.stop()
  return taken
}

async function firstAnswer(url: string, begin: number): Promise<number> {
  for (;;) {
    const status = await postAndRead(url, ECHO_BODY).then(
      (answer) => answer.status,
      () => 0, // nothing listens yet
    )
    const taken = performance.now() - begin
    if (status === 200) return taken
    if (taken > 30_000) throw new Error(`No answer of echo in 30 s, last status ${status}`)
    await pause(POLL_MS)
  }
}
