#!/bin/sh
# Makes what docs/howto/adopt-patches.md starts from, in the current folder: an upstream; a carrier, a
# Debian package and a Yocto layer with patches for it; a folder of patches, and a project without any.
set -e
git init -q upstream && cd upstream
printf '"""Greetings."""\n\n\ndef greet(name):\n    return "Hello, " + name\n\n\ndef part(name):\n    return "Bye, " + name\n' > greet.py
git add . && git commit -q -m 'Greet and part' && git tag v1.0
sed -i 's/Hello/Good day/' greet.py && git diff > ../0001-polite.diff && git add .
sed -i 's/Bye/Farewell/' greet.py && git diff > ../0002-part.diff
git reset -q --hard && sed -i '1a VERSION = "1.1"' greet.py
git commit -q -a -m 'Say the version' && git tag v1.1
cd .. && git clone -q --bare upstream greet.git

mkdir -p carrier/docker/patch
cp 0001-polite.diff carrier/docker/patch/0001-polite.patch
cp 0002-part.diff carrier/docker/patch/0002-part.patch
cat > carrier/docker/Dockerfile <<END
ARG GREET_TAG=v1.0
RUN git clone file://$PWD/greet.git && cd greet && git checkout \$GREET_TAG && git apply /patch/*
END
git -C carrier init -q && git -C carrier add . && git -C carrier commit -q -m 'Carry patches'

mkdir -p package/debian/patches/upstream
{ printf 'Description: Greet politely\n People asked for it.\nAuthor: You <you@example.com>\n\n---\n'
  tail -n +3 0001-polite.diff; } > package/debian/patches/upstream/polite.diff
printf '# what upstream will take\nupstream/polite.diff\n' > package/debian/patches/series

mkdir -p layer/recipes-greet/greet/greet
cp 0001-polite.diff layer/recipes-greet/greet/greet/0001-polite.patch
tail -n +3 0002-part.diff | sed 's# [ab]/# #' > layer/recipes-greet/greet/greet/part.diff
cat > layer/recipes-greet/greet/greet_1.0.bb <<'END'
SUMMARY = "Greets"
SRC_URI = "git://example.com/greet.git;branch=main \
    file://0001-polite.patch \
"
SRC_URI:append = " file://part.diff;striplevel=0"
SRC_URI:append:class-native = " file://native.patch"
END

mkdir old && mv *.diff old/
mkdir project && cd project
patchkit init hello --git ../upstream --ref v1.0 --component greeter
