/** Writes a number of bytes as a text such as `0.05 MB` or `1.21 GB`. */
export function bytesText(bytes: number): string {
  const [divisor, unit] = bytes < 1e9 ? [1e6, 'MB'] : [1e9, 'GB'];
  return `${(bytes / divisor).toLocaleString('en', { maximumFractionDigits: 2 })} ${unit}`;
}
