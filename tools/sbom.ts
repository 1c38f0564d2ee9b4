/**
 * Writes a bill of materials of what a user installs, in CycloneDX: `npm run sbom [-- FILE]`. Works offline,
 * from node_modules. It is npm's own, of the packages that are installed with this one and of those whose
 * code dist contains. `npm sbom --omit dev` of npm 11 leaves out packages that both need, such as esbuild.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { bundledPackages } from './bundle.ts'

interface Bom {
  readonly metadata: { readonly component: { readonly name: string } }
  readonly components: readonly {
    readonly name: string
    readonly version: string
    readonly 'bom-ref': string
    readonly properties?: readonly { readonly name: string }[]
  }[]
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[]
}

interface Lock {
  readonly name: string
  readonly packages: Readonly<Record<string, { readonly version?: string; readonly dev?: boolean }>>
}

/** NAME@VERSION of every package that an installation may contain. */
function installed({ packages }: Lock): Set<string> {
  const entries = Object.entries(packages).filter(([, { dev }]) => dev !== true)
  return new Set(entries.map(([path, { version }]) => `${path.split('node_modules/').at(-1)}@${version}`))
}

/** Without the packages for development only, and without edges to them. */
function forUsers(bom: Bom, lock: Lock, bundled: readonly string[]): Bom {
  const wanted = new Set([...installed(lock), ...bundled])
  const components = bom.components
    .filter(({ name, version }) => wanted.has(`${name}@${version}`))
    // npm counts what only dist needs as development.
    .map(({ properties = [], ...component }) => ({
      ...component,
      properties: properties.filter(({ name }) => name !== 'cdx:npm:package:development'),
    }))
  const kept = new Set(components.map((component) => component['bom-ref']))
  const all = new Set(bom.components.map((component) => component['bom-ref']))
  const isKept = (ref: string): boolean => kept.has(ref) || !all.has(ref) // the root is no component
  const dependencies = bom.dependencies
    .filter(({ ref }) => isKept(ref))
    .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter(isKept) }))
  // npm takes the name of the folder.
  const component = { ...bom.metadata.component, name: lock.name }
  return { ...bom, metadata: { ...bom.metadata, component }, components, dependencies }
}

const [file = 'sbom.cdx.json'] = process.argv.slice(2)
const { stdout } = await execa('npm', ['sbom', '--sbom-format', 'cyclonedx', '--offline'])
const lock = JSON.parse(readFileSync('package-lock.json', 'utf8')) as Lock
const bom = forUsers(JSON.parse(stdout) as Bom, lock, await bundledPackages(join(import.meta.dirname, '..')))
writeFileSync(file, `${JSON.stringify(bom, undefined, 2)}\n`)
console.log(`Wrote ${file}: ${bom.components.length} packages`)
