# SPDX-License-Identifier: LGPL-2.1-or-later
# timeout: 1500
# The cost of the counters compared with bcc's wqlat. Asserts no time, only that there are figures and all was
# counted.
. lib.sh

crypt_open c0
items=3000
# The smallest blocks, so that the work items are short.
/usr/lib/wq-tests/overhead.sh "$(wq_of c0)" $items fio --name=load --filename=/dev/mapper/c0 --rw=randwrite --bs=512 \
  --norandommap --iodepth=16 --ioengine=libaio --direct=1 --thread --numjobs=2 --number_ios=$((items / 2)) --output=/dev/null
crypt_close c0
