// With a plant of the console, the page shows only its form, and nothing until that is filled in.
if (location.hash.startsWith('#plant=')) document.documentElement.dataset.correction = 'pending';
