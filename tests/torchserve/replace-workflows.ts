import { copyFile, readdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { StandIns } from './stand-ins.ts'
import { isWar } from './wars.ts'
import type { Workspace } from './workspace.ts'

/** The workflow archives in the checkout hold Python functions; in the copy they become stand-ins. */
export async function replaceWorkflows(space: Workspace, standIns: StandIns): Promise<void> {
  const folder = join(space.checkout, 'test', 'resources', 'workflow')
  for (const file of await readdir(folder)) {
    const name = basename(file, '.war')
    if (isWar(name)) await copyFile(await standIns.war(name), join(folder, file))
  }
}
