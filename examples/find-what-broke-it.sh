#!/bin/sh
# Makes what docs/howto/find-what-broke-it.md starts from, in the current folder.
set -e
git init -q upstream && cd upstream
printf 'def price(n):\n    return 3 * n\n\n\ndef name(n):\n    return str(n)\n' > shop.py
printf 'import shop\n\nassert shop.price(2) == 6\n' > try.py
git add . && git commit -q -m 'Sell'
for n in 1 2 3 4 5 6; do
    [ $n = 4 ] && sed -i 's/    return str(n)/    return repr(n, 4)/' shop.py
    echo $n > notes.txt && git add . && git commit -q -m "Note $n"
done
cd .. && mkdir -p project/manifests project/patches/shop && cd project
git clone -q ../upstream scratch && cd scratch && git reset -q --hard HEAD~6
sed -i 's/return 3 \* n/return n * 3/' shop.py && git commit -q -a -m 'Turn round'
git format-patch -q -1 --stdout --no-signature > ../patches/shop/turn-round.patch
sed -i 's/return n \* 3/return n + 3/' shop.py && git commit -q -a -m 'Make it cheaper'
git format-patch -q -1 --stdout --no-signature > ../patches/shop/cheaper.patch
printf 'x = 1\n' > x.py && git add . && git commit -q -m 'Add x'
git format-patch -q -1 --stdout --no-signature > ../patches/shop/x.patch
cd .. && rm -rf scratch
printf 'turn-round.patch\ncheaper.patch\nx.patch\n' > patches/shop/series
cat > manifests/shop.yaml <<END
version: 1
components:
  shop:
    source: {git: ../upstream}
    pin: $(git -C ../upstream rev-parse HEAD~6)
    track: $(git -C ../upstream symbolic-ref --short HEAD)
    patches: [{series: patches/shop/series}]
END
cd ..
