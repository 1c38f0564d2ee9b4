/**
 * Writes a bill of materials of what a user installs, in CycloneDX: `npm run sbom [-- FILE]`. Works offline,
 * from node_modules. It is npm's own, without what package-lock.json marks as development in every place:
 * `npm sbom --omit dev` of npm 11 also leaves out packages that both need, such as esbuild and tar.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { execa } from 'execa'

interface Bom {
  readonly metadata: { readonly component: { readonly name: string } }
  readonly components: readonly {
    readonly name: string
    readonly version: string
    readonly 'bom-ref': string
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

/** Without the packages for development, and without edges to them. */
function forUsers(bom: Bom, lock: Lock): Bom {
  const wanted = installed(lock)
  const components = bom.components.filter(({ name, version }) => wanted.has(`${name}@${version}`))
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
const bom = forUsers(JSON.parse(stdout) as Bom, JSON.parse(readFileSync('package-lock.json', 'utf8')) as Lock)
writeFileSync(file, `${JSON.stringify(bom, undefined, 2)}\n`)
console.log(`Wrote ${file}: ${bom.components.length} packages`)
