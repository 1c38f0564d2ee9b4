import { copyFile, mkdir, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { Collection } from './collections.ts'
import { runCollection } from './newman.ts'
import type { Result } from './result.ts'
import type { StandIns } from './stand-ins.ts'
import { TorchServeProcess } from './torchserve-process.ts'
import type { Workspace } from './workspace.ts'

/** Runs one collection with a server and a model store of its own. */
export async function runPostman(
  collection: Collection,
  space: Workspace,
  standIns: StandIns,
): Promise<Result[]> {
  const cwd = join(space.checkout, 'test')
  await fillStore(join(cwd, 'model_store'), standIns)
  const report = join(space.reports, `${collection.name}.json`)
  try {
    const server = await TorchServeProcess.start(
      await flags(collection, cwd),
      cwd,
      space.env,
      join(space.reports, `${collection.name}.log`),
    )
    try {
      return await runCollection(collection, cwd, report)
    } finally {
      await server.stop()
    }
  } catch (error) {
    const reason = (error as Error).message
    return [{ suite: collection.name, test: 'the whole collection', outcome: 'failed', reason }]
  }
}

/** The flags that ts_scripts/tsutils.py gives. */
async function flags({ config, workflows }: Collection, cwd: string): Promise<string[]> {
  const file = typeof config === 'string' ? config : 'config.properties'
  if (typeof config !== 'string') await writeFile(join(cwd, file), `${config.join('\n')}\n`)
  return [
    ...['--model-store', 'model_store', '--ncs', '--disable-token-auth', '--enable-model-api'],
    ...['--ts-config', file],
    ...(workflows ? ['--workflow-store', 'model_store'] : []),
  ]
}

/** The archives that the environment of the collections names by file. */
async function fillStore(store: string, standIns: StandIns): Promise<void> {
  await rm(store, { recursive: true, force: true })
  await mkdir(store)
  for (const name of standIns.inStore) {
    const archive = await standIns.archive(name)
    await copyFile(archive, join(store, basename(archive)))
  }
}
