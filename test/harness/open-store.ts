/** Opens stores by the URL of a database, as for `--database`. */
import { databaseAddressOf } from '../../src/engines/openers/database-url.ts';
import { openerOf as openerOfAddress } from '../../src/engines/openers/open-store.ts';
import type { ServedSettings, StoreOpener } from '../../src/engines/openers/store-opener.ts';

const openerOf = (url: string): StoreOpener => openerOfAddress(databaseAddressOf(url));

export const openServedStore = async ({ database, ...settings }: ServedSettings & { database: string }) =>
  openerOf(database).openServed(settings, () => {});

export const openCommandStore = async (url: string) => openerOf(url).openForCommand('create');

export const openReader = async (url: string) => openerOf(url).openReader();

export const openSearch = async (url: string) => openerOf(url).openSearch();

export const openCopyTarget = async (url: string) => openerOf(url).openCopyTarget();
