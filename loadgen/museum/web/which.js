/* Which lock? The first rule that fits the answers. */
'use strict';

(() => {
  const form = document.getElementById('which-form');
  const rules = JSON.parse(document.getElementById('which-data').textContent);
  const because = document.getElementById('which-because');
  const link = document.createElement('a');

  function choose() {
    const answers = Object.fromEntries(new FormData(form));
    const rule = rules.find((one) => Object.entries(one.if).every(([question, answer]) => answers[question] === answer));
    document.querySelectorAll('.choice').forEach((choice) => { choice.hidden = choice.id !== `which-${rule.guard}`; });
    link.href = `#${rule.scene}/0`;
    link.textContent = document.getElementById(rule.scene).querySelector('h2').textContent;
    because.replaceChildren(`${rule.text} `, link);
  }

  form.addEventListener('change', choose);
  choose();
})();
