import { readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { shownPath } from '../../common/curl-lines.ts'
import { isObject, ownValue, parseJson } from '../../common/json.ts'
import { packageRoot } from '../../model-archiver/package-root.ts'

/**
 * The command that installs packages where torchserve-ts finds them, in the versions that it works with.
 * @param names sorted
 * @param root folder of the torchserve-ts package
 */
export function installCommand(names: readonly string[], root = packageRoot()): string {
  const versions = peerVersions(root)
  const wanted = names.map((name) => {
    const version = ownValue(versions, name)
    return typeof version === 'string' ? `'${name}@${version}'` : name
  })
  const modules = dirname(root)
  if (basename(modules) !== 'node_modules') return `cd ${shownPath(root)} && npm install`
  if (/[/\\]_npx[/\\]/.test(root))
    return `npx ${['torchserve-ts', ...wanted].map((name) => `-p ${name}`).join(' ')} torchserve-ts serve ...`
  const project = dirname(modules)
  if (basename(project) === 'lib') return `npm install --global ${wanted.join(' ')}`
  return `cd ${shownPath(project)} && npm install ${wanted.join(' ')}`
}

function peerVersions(root: string): Record<string, unknown> {
  const json = parseJson(readFileSync(join(root, 'package.json'), 'utf8'))
  const peers = isObject(json) ? json['peerDependencies'] : undefined
  return isObject(peers) ? peers : {}
}
