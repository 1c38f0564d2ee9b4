#!/usr/bin/env node
// `npm create torchserve-ts [folder] [-- --template NAME]` is `torchserve-ts init`.
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

const description = createRequire(import.meta.url).resolve('torchserve-ts/package.json')
const { bin } = JSON.parse(readFileSync(description, 'utf8'))
const command = join(dirname(description), bin['torchserve-ts'])
const flags = [command, 'init', ...process.argv.slice(2)]
const { status } = spawnSync(process.execPath, flags, { stdio: 'inherit' })
process.exit(status ?? 1)
