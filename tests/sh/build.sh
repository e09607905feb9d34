# SPDX-License-Identifier: MIT
# configure, and what make install puts where.
. "$SRC/tests/sh/tap"
cd "$TMP"
unset CFLAGS CPPFLAGS LDFLAGS LIBS PKG_CONFIG AR

is() { [ "$1" = "$2" ] || { echo "got '$1', not '$2'"; false; }; }

# Each in a folder of its own: SHELL ARGUMENT...
configure() {
	mkdir -p "$TMP/c"
	(cd "$TMP/c" && "$@" >out 2>&1)
	status=$?
	cp "$TMP/c/out" out
	cp "$TMP/c/config.mk" config.mk 2>/dev/null
	rm -r "$TMP/c"
	return $status
}

refuses() {
	configure sh "$SRC/configure" --enable-nonsense
	is $? 2 && grep -q "unknown argument '--enable-nonsense'" out
}
ok "an unknown option ends with status 2" refuses

# Where what it finds is not the question, a compiler that can do all at once.
printf '#!/bin/sh\nexit 0\n' >cc-quick
chmod +x cc-quick
quick=$TMP/cc-quick

accepts() {
	configure sh "$SRC/configure" CC="$quick" --build=x86_64-linux-gnu \
		--prefix=/usr --includedir=/usr/include --mandir=/m \
		--infodir=/i --sysconfdir=/etc --localstatedir=/var \
		--disable-option-checking --disable-silent-rules \
		--libdir=/usr/lib --runstatedir=/run --newdir=/x \
		--disable-maintainer-mode --disable-dependency-tracking ||
		{ cat out; return 1; }
	printf '%s\n' 'include config.mk' 'all:' '	@echo $(mandir) $(bindir)' \
		>show.mk
	is "$(make -s -f show.mk)" '/m /usr/bin' &&
		is "$(make -s -f show.mk prefix=/p)" '/m /p/bin'
}
ok "what packagers pass is accepted" accepts

# A compiler for which there is no lz4.
cat >cc-without-lz4 <<END
#!/bin/sh
case " \$* " in *" -llz4 "*) exit 1 ;; esac
END
chmod +x cc-without-lz4
names_package() {
	configure sh "$SRC/configure" CC="$TMP/cc-without-lz4"
	is $? 1 && grep -q 'Debian.*: apt-get install liblz4-dev$' out &&
		grep -q 'Fedora: *dnf install lz4-devel$' out
}
ok "a missing library names the packages" names_package

# A machine with a compiler and no libc6-dev, until apt-get brings it, and with
# it all other libraries.
mkdir bare
cat >cc-bare <<END
#!/bin/sh
[ ! -e "$TMP/bare/libc" ] || exit 0
exec $CC -nostdinc "\$@"
END
cat >bare/apt-get <<END
#!/bin/sh
case " \$* " in *" libc6-dev "*) : >"$TMP/bare/libc" ;; esac
END
printf '#!/bin/sh\n[ "$1" != -n ] || shift\nexec "$@"\n' >bare/sudo
chmod +x cc-bare bare/*
names_libc() {
	configure sh "$SRC/configure" CC="$TMP/cc-bare"
	is $? 1 && grep -q 'Debian.*: apt-get install libc6-dev ' out &&
		grep -q 'Fedora: *dnf install glibc-devel ' out
}
installs_libc() {
	configure env PATH="$TMP/bare:$PATH" sh "$SRC/configure" \
		--install-deps CC="$TMP/cc-bare" || { cat out; return 1; }
	grep -q '^installing with apt-get: libc6-dev ' out
}
ok "a compiler without headers: libc6-dev is named" names_libc
ok "and installed before it is tried again" installs_libc

plain_flags() {
	configure sh "$SRC/configure" CC="$CC" PKG_CONFIG=false &&
		grep -q '^LIB_LIBS = -lzstd -llzma -llz4 -lz -lpcre2-8' config.mk
}
ok "works without pkg-config" plain_flags

configure sh "$SRC/configure" CC="$quick" && mv config.mk config.sh || :
for shell in dash "bash --posix" "busybox sh" mksh yash; do
	command -v "${shell%% *}" >/dev/null || continue
	# shellcheck disable=SC2086
	configure $shell "$SRC/configure" CC="$quick" || :
	ok "the same under $shell" cmp config.mk config.sh
done

again() {
	# A script older than that hour, else make wants config.mk newer.
	mkdir again old && cp "$SRC/configure" "$SRC/Makefile" old &&
		touch -d '1 day ago' old/configure && cd again
	../old/configure CC="$quick" CFLAGS="-O1 -DX=\$(x)" >/dev/null &&
		touch -d '1 hour ago' config.mk &&
		../old/configure CC="$quick" CFLAGS="-O1 -DX=\$(x)" >/dev/null &&
		[ -z "$(find config.mk -mmin -30)" ] &&
		grep -qxF 'CFLAGS = -O1 -DX=$$(x)' config.mk
}
ok "an unchanged config.mk keeps its date" again

# A module may have left the Makefile's lists: nothing of it stays.
lists_again() {
	named=$(sed -n 's/^srcdir = //p' "$BUILD/config.mk")
	make -n -C "$BUILD" -W "$named/Makefile" all >out &&
		is "$(grep -c 'rm -f libheapcore.a && ' out)" 1 &&
		is "$(grep -c ' CC ' out)" 0
}
ok "lists that change make the library anew" lists_again

installs() {
	# Never build in the middle of the tests.
	make -s -o heapcore -C "$BUILD" install DESTDIR="$TMP/d" prefix=/usr ||
		return
	cd d
	find . -type f | sort >../files
	for want in /heapcore /completions/heapcore /_heapcore \
		/heapcore.fish /LICENSE /README.md; do
		grep -q "$want\$" ../files || { echo "no $want"; return 1; }
	done
	for page in "$SRC"/man/*.[1-9]; do
		[ ! -e "$page" ] || grep -q "/man./${page##*/}\$" ../files ||
			{ echo "no ${page##*/}"; return 1; }
	done
}
ok "make install, in DESTDIR" installs

# dirs ARGUMENT...: the folders into which make install puts files.
dirs() {
	rm -rf e
	make -s -o heapcore -C "$BUILD" install DESTDIR="$TMP/e" "$@" || return
	(cd e && find . -type f) | sed 's|^\.\(.*\)/.*|\1|' | sort -u
}
prefixes() {
	[ "$(dirs prefix=/p | grep -v '^/p/')" = "" ] || return
	dirs prefix=/p | grep -qx /p/bin || return
	dirs prefix=/p bindir=/b mandir=/m >got
	grep -qx /b got && grep -qx /m/man1 got && ! grep -q '^/p/bin' got &&
		grep -q '^/p/libexec/' got
}
if grep -q '^bindir = /' "$BUILD/config.mk"; then
	skip "make install, elsewhere" "configured with --bindir"
else
	ok "make install, elsewhere" prefixes
fi

literal() {
	configure sh "$SRC/configure" CC="$quick" --prefix=/p \
		--mandir='${prefix}/share/m#n' || { cat out; return 1; }
	printf '%s\n' 'include config.mk' 'all:' "	@echo '\$(mandir)'" \
		>show.mk
	is "$(make -s -f show.mk prefix=/q)" '/q/share/m#n'
}
ok "a directory in terms of another" literal

versions() {
	version=$(sed -n 's/^VERSION = //p' "$SRC/Makefile")
	is "$(sed -n '1s/.*(\(.*\)-.*/\1/p' "$SRC/debian/changelog")" \
		"$version" &&
		is "$(sed -n 's/^Version: *//p' "$SRC/packaging/heapcore.spec")" \
			"$version" && grep -q "^## $version " "$SRC/NEWS.md"
}
ok "packages and news have the version of the program" versions

uninstalls() {
	make -s -C "$BUILD" uninstall DESTDIR="$TMP/d" prefix=/usr &&
		is "$(find "$TMP/d" -type f)" ""
}
ok "make uninstall leaves no file" uninstalls

# The objects of this build, linked as configure --static says.
links_static() {
	printf '%s\n' 'include config.mk' 'all:' \
		'	$(CC) $(STATIC) -o static $(OBJECTS) $(LIB_LIBS) -lm' \
		>link.mk
	make -s -f link.mk OBJECTS="$(echo "$BUILD"/obj/src/*.o) \
		$BUILD/libheapcore.a" || return
	rm -rf jail && mkdir -p jail/tmp && mv static jail/heapcore &&
		xz -dc "$SRC/tests/cores/plain/core.xz" >jail/core ||
		return
	if [ "$(id -u)" = 0 ]; then
		chroot jail /heapcore analyze core
	else
		(cd jail && ./heapcore analyze core)
	fi >out 2>err
	is $? 0 && grep -q '^WHERE THE MEMORY IS' out ||
		{ cat out err; return 1; }
}
if [ -n "$(sed -n 's/^SANITIZE = //p' "$BUILD/config.mk")" ]; then
	skip "a static program alone in a folder" "built with sanitizers"
elif ! configure sh "$SRC/configure" CC="$CC" --static; then
	skip "a static program alone in a folder" "no static libraries"
else
	ok "a static program alone in a folder" links_static
fi

if grep -q '^HARDEN_LDFLAGS = .*-pie.*now' "$BUILD/config.mk" &&
	command -v readelf >/dev/null
then
	readelf -hldW --dyn-syms "$HEAPCORE" >elf
	ok "the program is hardened" sh -c 'grep -q "Type: *DYN" elf &&
		grep -q GNU_RELRO elf && grep -q "FLAGS.*NOW" elf'
	# What -fstack-protector and _FORTIFY_SOURCE leave in it.
	ok "and its stack and buffers are checked" sh -c '
		grep -q " __stack_chk_fail@" elf &&
		grep -q " __.*printf_chk@" elf'
else
	skip "the program is hardened" "not a release build"
fi

finish
