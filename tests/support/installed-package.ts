import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { REPOSITORY } from './server.ts'
import { execa } from './tools.ts'

export const PACKAGE_ENV = { ...process.env, NODE_OPTIONS: '' }

/** Packs the build of this repository and installs it in a folder, as a user does. @returns the tarball */
export async function installPackage(folder: string): Promise<string> {
  const env = PACKAGE_ENV
  // Other test files use dist at the same time, which prepack would delete and build again.
  const pack = ['pack', '--silent', '--ignore-scripts', '--pack-destination', folder]
  const { stdout } = await execa('npm', pack, { cwd: REPOSITORY, env })
  const tarball = join(folder, stdout.trim())
  writeFileSync(join(folder, 'package.json'), '{"name":"somebody","private":true,"type":"module"}')
  const install = ['install', '--no-audit', '--no-fund', '--prefer-offline', '--omit=dev', tarball]
  await execa('npm', install, { cwd: folder, env })
  return tarball
}
