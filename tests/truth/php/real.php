<?php
// real.php WHAT FOLDER: programs that others wrote, from the packages that are
// unpacked in FOLDER: a parser of PHP, templates, Markdown, YAML, versions.
require __DIR__ . '/say.php';
[, $what, $folder] = $argv;
error_reporting(0);
ini_set('memory_limit', '1G');
spl_autoload_register(function ($class) use ($folder) {
	$file = "$folder/" . strtr($class, '\\_', '//') . '.php';
	$other = "$folder/" . strtr($class, '\\', '/') . '.php';
	if (is_file($other))
		require $other;
	elseif (is_file($file))
		require $file;
});
if (!function_exists('trigger_deprecation')) {
	function trigger_deprecation() {}
}

function files($folder, $most) {
	$all = new RecursiveIteratorIterator(
		new RecursiveDirectoryIterator($folder));
	$names = [];
	foreach ($all as $file)
		if ($file->getExtension() === 'php' && is_file($file))
			$names[] = (string)$file;
	sort($names);
	return array_slice($names, 0, $most);
}

function text($lines) {
	$text = "# A title\n\n";
	for ($i = 0; $i < $lines; $i++)
		$text .= "* item $i with *emphasis* and `code $i`\n" .
			"1. [a link](http://example.org/$i \"title $i\")\n\n" .
			"    code block $i\n\n";
	return $text;
}

switch ($what) {
case 'parser':
	$parser = method_exists('PhpParser\ParserFactory',
				'createForHostVersion') ?
		(new PhpParser\ParserFactory)->createForHostVersion() :
		(new PhpParser\ParserFactory)->create(1);
	foreach (files("$folder/PhpParser", 80) as $file)
		$kept[$file] = $parser->parse(file_get_contents($file));
	break;
case 'twig':
	$twig = new Twig\Environment(new Twig\Loader\ArrayLoader([
		'page' => '{% for i in list %}{{ loop.index }} ' .
			'{{ i.name|upper }} {{ include("row", i) }}' .
			"\n{% endfor %}",
		'row' => '{% if n > 5 %}<b>{{ n }}</b>{% else %}{{ n }}' .
			'{% endif %}',
	]));
	for ($i = 0; $i < 200; $i++)
		$list[] = ['name' => "name $i", 'n' => $i];
	for ($i = 0; $i < 20; $i++)
		$kept[] = $twig->render('page', ['list' => $list]);
	break;
case 'markdown':
	require "$folder/Parsedown/Parsedown.php";
	$down = new Parsedown;
	for ($i = 0; $i < 10; $i++)
		$kept[] = $down->text(text(40 + $i));
	break;
case 'yaml':
	for ($i = 0; $i < 300; $i++)
		$data["key $i"] = ['list' => range(0, 9), 'text' => "t$i",
				   'deep' => ['a' => ['b' => $i / 7]]];
	$kept = Symfony\Component\Yaml\Yaml::parse(
		Symfony\Component\Yaml\Yaml::dump($data, 5));
	break;
case 'semver':
	$parser = new Composer\Semver\VersionParser;
	for ($i = 0; $i < 1500; $i++)
		$kept[] = $parser->parseConstraints(
			"^1.$i || ~2.$i.0 || >=3.$i,<4.0");
	break;
}
if (empty($kept))
	exit("nothing was done\n");
for ($i = 0; $i < 3; $i++)
	gc_collect_cycles();
say();
