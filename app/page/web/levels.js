// The levels, their rows, and their words: the data of loadgen's museum, too.
import { words as en } from "./words_en.js";
import { words as zh } from "./words_zh.js";

const load = async (name) => (await fetch(`/web/${name}`)).json();
const [data, ...words] = await Promise.all(["levels.json", "levels.en.json", "levels.zh.json"].map(load));

export const { levels, subjects } = data;
[en.levels, zh.levels] = words;
