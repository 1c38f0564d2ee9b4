/**
 * Validates deploy/kserve against the definitions that KServe publishes in its Go module, and what Helm
 * renders of deploy/helm: `npm run test:manifests`. Needs Go to download and build. Ends with
 * `N passed, N failed`.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { checkChart } from './chart-published.ts'
import { manifests, schemasOf } from './resources.ts'
import { problems } from './schema.ts'
import { execa } from '../support/tools.ts'

const MODULE = 'github.com/kserve/kserve@v0.15.2'
const LIMIT_MS = 300_000
let passed = 0
let failed = 0

function report(name: string, found: readonly string[]): void {
  if (found.length === 0) passed += 1
  else failed += 1
  console.log(`${found.length === 0 ? 'ok' : 'FAILED'} ${name} ${found.join('; ')}`)
}

async function main(cache: string): Promise<void> {
  const download = async (module: string): Promise<string> => {
    const { stdout } = await execa('go', ['mod', 'download', '-json', module], {
      cwd: cache,
      env: { GOMODCACHE: cache, GOFLAGS: '-modcacherw' },
      timeout: LIMIT_MS,
    })
    return (JSON.parse(stdout) as { Dir: string }).Dir
  }
  const schemas = schemasOf(join(await download(MODULE), 'config', 'crd', 'full'))
  for (const resource of manifests('kserve')) {
    const schema = schemas.get(`${resource.apiVersion}/${resource.kind}`)
    const found = schema === undefined ? ['has no published schema'] : problems(resource, schema)
    report(`${resource.kind} ${resource.metadata.name}`, found)
  }
  await checkChart(cache, download, report)
}

const cache = await mkdtemp(join(tmpdir(), 'torchserve-ts-crds-'))
try {
  await main(cache)
} catch (error) {
  failed += 1
  console.log(
    `FAILED the definitions can be fetched, and the chart checked: ${error instanceof Error ? error.message : String(error)}`,
  )
} finally {
  await rm(cache, { recursive: true, force: true })
}
console.log(`${passed} passed, ${failed} failed`)
process.exitCode = failed === 0 && passed > 0 ? 0 : 1
