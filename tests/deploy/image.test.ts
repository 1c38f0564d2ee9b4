import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { build } from 'esbuild'
import { bundleOptions } from '../../tools/bundle.ts'
import { REPOSITORY } from '../support/server.ts'
import { execFileSync } from '../support/tools.ts'
import { isInContext, stagesOf, startOf } from './image/dockerfile.ts'

const DOCKERFILE = join(REPOSITORY, 'deploy', 'container', 'Dockerfile')
const patterns = readFileSync(`${DOCKERFILE}.dockerignore`, 'utf8').split('\n').filter(Boolean)
const stages = stagesOf(readFileSync(DOCKERFILE, 'utf8'))
const PYTHON = join(REPOSITORY, 'deploy', 'container', 'python.Dockerfile')

/** The image itself is built and started by `npm run test:image`. */
describe('the context of the image', () => {
  test('has every file that the build bundles', async () => {
    const { metafile } = await build({ ...bundleOptions(REPOSITORY), write: false })
    const files = Object.keys(metafile.inputs).filter((path) => !path.startsWith('node_modules/'))
    expect(files.length).toBeGreaterThan(300)
    const read = [...files, 'console/app.tsx', 'tools/build.ts', 'tsconfig.build.json']
    expect(read.filter((path) => !isInContext(path, patterns))).toEqual([])
  })

  test('has what the last stage copies besides what the build makes', () => {
    const made = ['dist', 'node_modules']
    const copied = stages.at(-1)!.instructions.filter(({ name }) => name === 'COPY')
    const sources = copied.map(({ text }) => text.replace('--from=build /build/', '').split(' ')[0]!)
    const tracked = execFileSync('git', ['ls-files'], { cwd: REPOSITORY, encoding: 'utf8' }).split('\n')
    const inContext = tracked.filter((path) => isInContext(path, patterns))
    expect(sources).toEqual(expect.arrayContaining(['package.json', 'libexec', 'python', 'LICENSE', ...made]))
    const missing = sources.filter(
      (source) => !made.includes(source) && !inContext.some((path) => `${path}/`.startsWith(`${source}/`)),
    )
    expect(missing).toEqual([])
  })

  test('has neither tests nor what git ignores', () => {
    expect(isInContext('tests/deploy/image.test.ts', patterns)).toBe(false)
    expect(isInContext('node_modules/koa/package.json', patterns)).toBe(false)
    expect(isInContext('configs/default', ['**', '!conf'])).toBe(false)
  })
})

test('a container of the image runs the server as a user without rights', () => {
  expect(startOf(stages.at(-1)!)).toMatchObject({
    user: '1000',
    folder: '/opt/torchserve-ts',
    ports: [8080, 9000, 8082],
    env: { LOG_LOCATION: '/tmp/logs', TEMP: '/tmp' },
  })
})

describe('the image for Python archives', () => {
  const [server, python, ...others] = stagesOf(readFileSync(PYTHON, 'utf8'))

  test('adds to one of TorchServe what the server’s image has: Node.js and the whole application', () => {
    expect([server!.base, python!.base, others]).toEqual([
      'torchserve-ts:latest',
      'pytorch/torchserve:0.12.0-cpu',
      [],
    ])
    const { folder } = startOf(stages.at(-1)!)
    expect(python!.instructions.filter(({ name }) => name === 'COPY').map(({ text }) => text)).toEqual([
      `--from=${server!.name} /usr/local/bin/node /usr/local/bin/node`,
      `--from=${server!.name} ${folder} ./`,
    ])
  })

  test('starts as the server’s image does', () => {
    expect(startOf(python!)).toEqual(startOf(stages.at(-1)!))
  })
})

test('an instruction that the test does not know is an error', () => {
  expect(() => stagesOf('FROM a\nVOLUME /data')).toThrow('VOLUME /data is not supported')
})
