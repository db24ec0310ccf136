"""The device, once for all tests."""

import npusim

npusim.install()
