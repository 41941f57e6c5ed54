import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const RULES_TEST = fileURLToPath(new URL('alerts.test.yaml', import.meta.url));
const hasPromtool = spawnSync('promtool', ['--version']).status === 0;

test('alerts fire when they should, as alerts.test.yaml lists', {
  skip: !hasPromtool && 'NOT TESTED HERE: the alert rules need promtool',
}, () => {
  const { status, stdout, stderr } = spawnSync('promtool', ['test', 'rules', RULES_TEST], {
    encoding: 'utf8',
  });
  assert.equal(status, 0, stdout + stderr);
});
