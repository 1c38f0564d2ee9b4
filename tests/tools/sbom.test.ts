import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { REPOSITORY } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { execa } from '../support/tools.ts'

interface Bom {
  bomFormat: string
  metadata: { component: { name: string } }
  components: { name: string; version: string; 'bom-ref': string }[]
  dependencies: { ref: string; dependsOn: string[] }[]
}

interface Lock {
  packages: Record<string, { version?: string; dev?: boolean; devOptional?: boolean; link?: boolean }>
}

test('the bill of materials has what users install, and nothing for development', async () => {
  const file = join(tempDir(), 'sbom.json')
  await execa('npm', ['run', '--silent', 'sbom', '--', file], { cwd: REPOSITORY })
  const bom = JSON.parse(readFileSync(file, 'utf8')) as Bom
  const lock = JSON.parse(readFileSync(join(REPOSITORY, 'package-lock.json'), 'utf8')) as Lock
  const installed = Object.entries(lock.packages).filter(
    ([path, { dev, devOptional, link }]) =>
      path !== '' && !dev && !devOptional && !link && existsSync(join(REPOSITORY, path)),
  )
  const wanted = new Set(
    installed.map(([path, { version }]) => `${path.split('node_modules/').at(-1)}@${version}`),
  )
  const listed = new Set(bom.components.map(({ name, version }) => `${name}@${version}`))
  expect(bom.bomFormat).toBe('CycloneDX')
  expect(bom.metadata.component.name).toBe('torchserve-ts')
  expect([...wanted].filter((name) => !listed.has(name))).toEqual([])
  // What dist contains is installed without a folder of its own.
  const bundled = readFileSync(join(REPOSITORY, 'dist', 'third-party-licences.txt'), 'utf8')
  const inDist = [...bundled.matchAll(/^-{80}\n(\S+) ([^,\s]+),/gm)].map((match) => `${match[1]}@${match[2]}`)
  expect(inDist.length).toBeGreaterThan(40)
  expect(inDist.filter((name) => !listed.has(name))).toEqual([])
  expect(JSON.stringify(bom.components)).not.toContain('package:development')
  expect([...listed].filter((name) => /^(jest|typescript|eslint|prettier)@/.test(name))).toEqual([])
  const refs = new Set(bom.components.map((component) => component['bom-ref']))
  const targets = bom.dependencies.flatMap(({ dependsOn }) => dependsOn)
  expect(targets.filter((ref) => !refs.has(ref))).toEqual([])
})
