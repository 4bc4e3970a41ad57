"""Models of devices: the names that drivers report, and what their makers state.

Most rates follow from three figures of a model: its units (multiprocessors, compute units or Xe cores), the operations
of one unit in one clock cycle, which all models of a family share, and the boost clock. `Family` multiplies them. Where
a maker states rates at another clock than that, as for most cards of data centres, the rates stand here as stated.

Rates are dense, without sparsity. A multiplication with its addition is 2 operations. Products of 16 bits are summed in
float32, as PyTorch does: GeForce cards take twice as long for that as for sums in 16 bits, cards for workstations and
data centres do not. Names are those of drivers. The makers' names in front of them do not matter
(`device_models.plain_name`), since drivers write `Tesla V100`, `NVIDIA A100` and, before 2021, `GeForce RTX 2080`.

Names: https://github.com/NVIDIA/open-gpu-kernel-modules (README.md),
https://gitlab.freedesktop.org/mesa/libdrm (data/amdgpu.ids). Units, boost clocks and bandwidths of the rows without a
source of their own: https://www.techpowerup.com/gpu-specs/
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

import msgspec

Architecture: TypeAlias = tuple[str, int, int]


class Unit(msgspec.Struct, frozen=True, kw_only=True):
    """Operations of one unit in one clock cycle; None where it has no instruction for them.

    Attributes:
        float64, float32: on ordinary cores. float64_matrix, float32_matrix: on matrix units; TF32 on NVIDIA.
        float16, bfloat16, float8: the most that the unit does, whether on matrix units or not.
        matrix: False for units without matrix units, which do 16 bits on ordinary cores.
    """

    float32: int
    float16: int | None
    bfloat16: int | None = None
    float8: int | None = None
    float64: int | None = None
    float64_matrix: int | None = None
    float32_matrix: int | None = None
    matrix: bool = True


class DeviceRates(msgspec.Struct, frozen=True):
    """One row: rates in TFLOP/s as in `Unit`, memory in GB and GB/s.

    Attributes:
        name: as drivers report it. Several rows of one name differ in units or memory.
        units: what a trace calls `numSms`.
    """

    name: str
    units: int
    gigabytes: float
    gigabytes_per_second: float
    float32: float
    float16: float | None = None
    bfloat16: float | None = None
    float8: float | None = None
    float64: float | None = None
    float64_matrix: float | None = None
    float32_matrix: float | None = None
    matrix: bool = True


class Family(msgspec.Struct, frozen=True):
    """Models of one architecture.

    Attributes:
        architecture: platform, then major and minor number as in a trace (`computeMajor`, `computeMinor`).
        unit: operations of each of their units.
        rows: a line for each model: units, boost clock in MHz, memory in GB, its rate in GB/s, name.
    """

    architecture: Architecture
    unit: Unit
    rows: str

    def models(self) -> Iterator[DeviceRates]:
        """The rows with their rates: units × operations × clock."""
        for line in self.rows.strip().splitlines():
            units, megahertz, gigabytes, bandwidth, name = line.split(None, 4)
            tera_cycles = int(units) * int(megahertz) / 1e6
            rates = rates_of(self.unit, tera_cycles)
            yield DeviceRates(name, int(units), float(gigabytes), float(bandwidth), matrix=self.unit.matrix, **rates)


def rates_of(unit: Unit, tera_cycles: float) -> dict[str, float]:
    """TFLOP/s of units that together do so many cycles, by the fields of `DeviceRates`."""
    each = msgspec.structs.asdict(unit)
    return {name: operations * tera_cycles for name, operations in each.items() if operations and name != "matrix"}


class Stated(msgspec.Struct, frozen=True):
    """Models with the rates that their makers state.

    Attributes:
        architecture: as above.
        rows: a line for each model: units, memory in GB, its rate in GB/s, TFLOP/s in float64, on its matrix units, in
            float32, on its matrix units, in float16, bfloat16 and float8, name; `-` for none.
    """

    architecture: Architecture
    rows: str

    def models(self) -> Iterator[DeviceRates]:
        """The rows."""
        names = ("float64", "float64_matrix", "float32", "float32_matrix", "float16", "bfloat16", "float8")
        for line in self.rows.strip().splitlines():
            units, gigabytes, bandwidth, *rates, name = line.split(None, 10)
            given = {key: float(rate) for key, rate in zip(names, rates, strict=True) if rate != "-"}
            yield DeviceRates(name, int(units), float(gigabytes), float(bandwidth), matrix=True, **given)


# NVIDIA

# https://docs.nvidia.com/cuda/cuda-c-programming-guide/ (throughput of native arithmetic instructions) and
# https://images.nvidia.com/content/pdf/tesla/whitepaper/pascal-architecture-whitepaper.pdf
# PyTorch multiplies 16 bits in float32 there: the instructions for 16 bits are a 64th as fast.
_PASCAL = Family(
    ("cuda", 6, 1),
    Unit(float64=8, float32=256, float16=256, matrix=False),
    """
   5  1493    2  112.1  GeForce GTX 1050
   6  1518    3   84.1  GeForce GTX 1050
   6  1620    4  112.1  GeForce GTX 1050 Ti
   9  1708    3  192.2  GeForce GTX 1060 3GB
  10  1709    5  160.2  GeForce GTX 1060 5GB
  10  1709    6  216.7  GeForce GTX 1060 6GB
  10  1671    6  192.2  GeForce GTX 1060
  10  1480    6  192.2  GeForce GTX 1060 with Max-Q Design
  16  1683    8  256.3  GeForce GTX 1070
  16  1379    8  256.3  GeForce GTX 1070 with Max-Q Design
  19  1683    8  256.3  GeForce GTX 1070 Ti
  20  1734    8  352.3  GeForce GTX 1080
  20  1366    8  320.3  GeForce GTX 1080 with Max-Q Design
  28  1582   11  484.4  GeForce GTX 1080 Ti
   3  1468    2  48.06  GeForce GT 1030
  28  1531   12  480.4  TITAN X (Pascal)
  30  1582   12  547.6  TITAN Xp
  20  1114    8  192.3  Tesla P4
  16  1506   16  192.3  Tesla P6
  30  1531   24  347.1  Tesla P40
   2  1252    2  32.06  Quadro P400
   3  1557    2  64.13  Quadro P600
   4  1354    2  80.13  Quadro P620
   5  1480    4  80.19  Quadro P1000
   8  1480    5  140.2  Quadro P2000
  10  1493    5  200.2  Quadro P2200
  14  1480    8  243.3  Quadro P4000
  20  1733   16  288.5  Quadro P5000
  30  1645   24  432.8  Quadro P6000
  10  1215    6  168.2  Quadro P3000
  14  1543    6  168.2  Quadro P3200
  18  1594    8  224.4  Quadro P4200
  20  1759   16  230.9  Quadro P5200
""",
)
_P100 = Family(
    ("cuda", 6, 0),
    Unit(float64=64, float32=128, float16=256, matrix=False),
    """
  56  1480   16  732.2  Tesla P100-SXM2-16GB
  56  1329   16  732.2  Tesla P100-PCIE-16GB
  56  1329   12  549.1  Tesla P100-PCIE-12GB
  56  1480   16  732.2  Tesla P100-DGXS-16GB
  56  1443   16  732.2  Quadro GP100
""",
)

# https://images.nvidia.com/content/technologies/volta/pdf/volta-v100-datasheet-update-us-1165301-r5.pdf
_V100 = Stated(
    ("cuda", 7, 0),
    """
  80   16    900   7.8     -  15.7     -    125      -      -  Tesla V100-SXM2-16GB
  80   32    900   7.8     -  15.7     -    125      -      -  Tesla V100-SXM2-32GB
  80   16    900   7.0     -  14.0     -    112      -      -  Tesla V100-PCIE-16GB
  80   32    900   7.0     -  14.0     -    112      -      -  Tesla V100-PCIE-32GB
  80   32   1134   8.2     -  16.4     -    130      -      -  Tesla V100S-PCIE-32GB
""",
)
# https://images.nvidia.com/content/volta-architecture/pdf/volta-architecture-whitepaper.pdf
_VOLTA = Family(
    ("cuda", 7, 0),
    Unit(float64=64, float32=128, float16=1024),
    """
  80  1597   32    981  Tesla V100-SXM3-32GB
  80  1582   16    897  Tesla V100-DGXS-16GB
  80  1530   32    897  Tesla V100-DGXS-32GB
  80  1290   16  827.4  Tesla V100-FHHL-16GB
  80  1627   32  868.4  Quadro GV100
  80  1455   12  651.3  TITAN V
  80  1455   32  868.4  TITAN V CEO Edition
  80  1530   32   1130  Tesla PG503-216
""",
)
# https://developer.nvidia.com/embedded/jetson-agx-xavier
_XAVIER = Family(
    ("cuda", 7, 2),
    Unit(float32=128, float16=1024),
    """
   8  1377   32  136.5  Xavier
   6  1100   16  59.71  Xavier
""",
)

# https://images.nvidia.com/aem-dam/en-zz/Solutions/design-visualization/technologies/turing-architecture/
# NVIDIA-Turing-Architecture-Whitepaper.pdf
_TURING_WITHOUT_MATRIX_UNITS = Family(
    ("cuda", 7, 5),
    Unit(float64=4, float32=128, float16=256, matrix=False),
    """
   8  1785    4     96  GeForce GTX 1630
  16  1665    4    192  GeForce GTX 1650
  14  1665    4  128.1  GeForce GTX 1650
  16  1245    4    160  GeForce GTX 1650 with Max-Q Design
  20  1725    4    192  GeForce GTX 1650 SUPER
  16  1485    4    192  GeForce GTX 1650 Ti
  16  1200    4    160  GeForce GTX 1650 Ti with Max-Q Design
  22  1785    6  192.1  GeForce GTX 1660
  22  1785    6    336  GeForce GTX 1660 SUPER
  24  1770    6    288  GeForce GTX 1660 Ti
  24  1335    6    288  GeForce GTX 1660 Ti with Max-Q Design
  14  1575    2     80  GeForce MX450
  16  1320    2     96  GeForce MX550
   6  1425    2     80  NVIDIA T400
   6  1425    4     80  NVIDIA T400 4GB
  14  1560    4     80  NVIDIA T500
  16  1665    4     96  NVIDIA T550 Laptop GPU
  10  1335    4    160  NVIDIA T600
  14  1410    4    192  NVIDIA T600 Laptop GPU
  14  1395    4    160  NVIDIA T1000
  14  1395    8    160  NVIDIA T1000 8GB
  16  1785    4    192  NVIDIA T1200 Laptop GPU
  14  1650    4    192  Quadro T1000
  14  1350    4     80  Quadro T1000 with Max-Q Design
  16  1785    4  128.1  Quadro T2000
  16  1395    4     80  Quadro T2000 with Max-Q Design
""",
)
_TURING_GEFORCE = Family(
    ("cuda", 7, 5),
    Unit(float64=4, float32=128, float16=512),
    """
  30  1680    6    336  GeForce RTX 2060
  34  1650   12    336  GeForce RTX 2060
  30  1200    6  259.8  GeForce RTX 2060 with Max-Q Design
  34  1650    8    448  GeForce RTX 2060 SUPER
  36  1620    8    448  GeForce RTX 2070
  36  1185    8    384  GeForce RTX 2070 with Max-Q Design
  40  1770    8    448  GeForce RTX 2070 SUPER
  40  1155    8    352  GeForce RTX 2070 Super with Max-Q Design
  46  1710    8    448  GeForce RTX 2080
  46  1095    8    384  GeForce RTX 2080 with Max-Q Design
  48  1815    8  495.9  GeForce RTX 2080 SUPER
  48   975    8    352  GeForce RTX 2080 Super with Max-Q Design
  68  1545   11    616  GeForce RTX 2080 Ti
""",
)
_TURING = Family(
    ("cuda", 7, 5),
    Unit(float64=4, float32=128, float16=1024),
    """
  40  1590   16    320  NVIDIA T4G
  56  1395   16  403.2  Tesla T10
  72  1770   24    672  TITAN RTX
  30  1380    6    336  Quadro RTX 3000
  30  1215    6    288  Quadro RTX 3000 with Max-Q Design
  40  1560    8    448  Quadro RTX 4000
  36  1545    8    416  Quadro RTX 4000
  40  1380    8    384  Quadro RTX 4000 with Max-Q Design
  48  1815   16    448  Quadro RTX 5000
  48  1350   16    384  Quadro RTX 5000 with Max-Q Design
  72  1770   24    672  Quadro RTX 6000
  72  1770   48    672  Quadro RTX 8000
""",
)
# https://www.nvidia.com/en-us/data-center/tesla-t4/
_T4 = Stated(
    ("cuda", 7, 5),
    """
  40   16    320     -     -   8.1     -     65      -      -  Tesla T4
""",
)

# https://www.nvidia.com/content/dam/en-zz/Solutions/Data-Center/a100/pdf/nvidia-a100-datasheet-us-nvidia-1758950-r4-web.pdf
# The PG509 boards are SXM4 modules by their PCI ids. A800: https://www.nvidia.com/en-us/design-visualization/a800/
_A100 = Stated(
    ("cuda", 8, 0),
    """
 108   40   1555   9.7  19.5  19.5   156    312    312      -  NVIDIA A100-SXM4-40GB
 108   40   1555   9.7  19.5  19.5   156    312    312      -  NVIDIA A100-PCIE-40GB
 108   40   1555   9.7  19.5  19.5   156    312    312      -  NVIDIA A100-PG509-200
 108   80   2039   9.7  19.5  19.5   156    312    312      -  NVIDIA PG509-210
 108   80   2039   9.7  19.5  19.5   156    312    312      -  NVIDIA A100-SXM4-80GB
 108   80   1935   9.7  19.5  19.5   156    312    312      -  NVIDIA A100 80GB PCIe
 108   40   1555   9.7  19.5  19.5   156    312    312      -  NVIDIA A800-SXM4-40GB
 108   40   1555   9.7  19.5  19.5   156    312    312      -  NVIDIA A800 40GB Active
 108   80   2039   9.7  19.5  19.5   156    312    312      -  NVIDIA A800-SXM4-80GB
 108   80   1935   9.7  19.5  19.5   156    312    312      -  NVIDIA A800 80GB PCIe
 108   80   1935   9.7  19.5  19.5   156    312    312      -  NVIDIA A800 80GB PCIe LC
""",
)
# https://images.nvidia.com/aem-dam/en-zz/Solutions/data-center/nvidia-ampere-architecture-whitepaper.pdf; the 64 GB
# module of Leonardo has 124 units: https://arxiv.org/abs/2307.16885
_AMPERE_DATA_CENTRE = Family(
    ("cuda", 8, 0),
    Unit(
        float64=64,
        float64_matrix=128,
        float32=128,
        float32_matrix=1024,
        float16=2048,
        bfloat16=2048,
    ),
    """
 124  1395   64   1640  NVIDIA A100-SXM-64GB
 108  1440   80   2040  NVIDIA A100X
 108  1440   80   2040  NVIDIA AX800
  56  1440   24  933.1  NVIDIA A30
  56  1440   24  933.1  NVIDIA PG506-232
  56  1440   24   1220  NVIDIA A30X
""",
)
# https://www.nvidia.com/content/PDF/nvidia-ampere-ga-102-gpu-architecture-whitepaper-v2.pdf; upper ends of the clocks
# of laptops: https://www.nvidia.com/en-us/geforce/laptops/compare/30-series/; A10G:
# https://d1.awsstatic.com/product-marketing/ec2/NVIDIA_AWS_A10G_DataSheet_FINAL_02_17_2022.pdf
_AMPERE_GEFORCE = Family(
    ("cuda", 8, 6),
    Unit(float64=4, float32=256, float32_matrix=256, float16=512, bfloat16=512),
    """
  20  1777    8    224  GeForce RTX 3050
  18  1470    6    168  GeForce RTX 3050
  18  1755    8    224  GeForce RTX 3050 OEM
  28  1777   12    360  GeForce RTX 3060
  28  1777    8    240  GeForce RTX 3060
  38  1665    8  608.3  GeForce RTX 3060 Ti
  46  1725    8    448  GeForce RTX 3070
  48  1770    8  608.3  GeForce RTX 3070 Ti
  68  1710   10  760.3  GeForce RTX 3080
  70  1710   12  912.4  GeForce RTX 3080
  80  1665   12  912.4  GeForce RTX 3080 Ti
  82  1695   24  936.2  GeForce RTX 3090
  84  1860   24   1010  GeForce RTX 3090 Ti
  16  1477    4    112  GeForce RTX 2050
  16  1740    4    192  GeForce RTX 3050 Laptop GPU
  20  1740    4    224  GeForce RTX 3050 4GB Laptop GPU
  20  1740    6    168  GeForce RTX 3050 6GB Laptop GPU
  14  1343    4    192  GeForce RTX 3050 A Laptop GPU
  16  1155    2     96  GeForce MX570
  16  1155    2     96  GeForce MX570 A
  20  1695    4    192  GeForce RTX 3050 Ti Laptop GPU
  20  1695    4    192  GeForce RTX 3050Ti Laptop GPU
  30  1703    6    336  GeForce RTX 3060 Laptop GPU
  40  1620    8    448  GeForce RTX 3070 Laptop GPU
  46  1485    8    448  GeForce RTX 3070 Ti Laptop GPU
  48  1710    8    448  GeForce RTX 3080 Laptop GPU
  58  1590   16    512  GeForce RTX 3080 Ti Laptop GPU
  80  1710   24  600.2  NVIDIA A10G
""",
)
_AMPERE = Family(
    ("cuda", 8, 6),
    Unit(float64=4, float32=256, float32_matrix=512, float16=1024, bfloat16=1024),
    """
  10  1770   16  200.1  NVIDIA A2
  72  1695   24  600.2  NVIDIA A10
  56  1635   20  500.2  NVIDIA A10M
  10  1755   16  200.1  NVIDIA A16
  84  1740   48  695.8  NVIDIA A40
   6  1762    4     96  NVIDIA RTX A400
  18  1462    8    192  NVIDIA RTX A1000
  26  1200    6    288  NVIDIA RTX A2000
  26  1200   12    288  NVIDIA RTX A2000 12GB
  48  1560   16    448  NVIDIA RTX A4000
  48  1560   16    448  NVIDIA RTX A4000H
  56  1650   20    640  NVIDIA RTX A4500
  64  1695   24    768  NVIDIA RTX A5000
  80  1665   24    768  NVIDIA RTX A5500
  84  1800   48    768  NVIDIA RTX A6000
  16  1537    4     96  NVIDIA RTX A500 Laptop GPU
  16  1140    4    176  NVIDIA RTX A1000 Laptop GPU
  20  1140    6    132  NVIDIA RTX A1000 6GB Laptop GPU
  20  1687    4    192  NVIDIA RTX A2000 Laptop GPU
  20  1612    8    224  NVIDIA RTX A2000 8GB Laptop GPU
  32  1230    6    264  NVIDIA RTX A3000 Laptop GPU
  32  1440   12    336  NVIDIA RTX A3000 12GB Laptop GPU
  40  1680    8    384  NVIDIA RTX A4000 Laptop GPU
  46  1500   16    512  NVIDIA RTX A4500 Laptop GPU
  48  1575   16    448  NVIDIA RTX A5000 Laptop GPU
  58  1500   16    512  NVIDIA RTX A5500 Laptop GPU
  16  1335    4     96  NVIDIA RTX A500 Embedded GPU
  16  1140    4    224  NVIDIA RTX A1000 Embedded GPU
  20  1177    4    192  NVIDIA RTX A2000 Embedded GPU
  46  1215   16    384  NVIDIA RTX A4500 Embedded GPU
""",
)
# https://www.nvidia.com/content/dam/en-zz/Solutions/gtcf21/jetson-orin/nvidia-jetson-agx-orin-technical-brief.pdf, at
# the clocks of `MAXN SUPER`. All of them report the same name.
_ORIN = Family(
    ("cuda", 8, 7),
    Unit(float32=256, float32_matrix=1024, float16=2048, bfloat16=2048),
    """
  16  1300   64  204.8  Orin
  14   930   32  204.8  Orin
   8  1173   16  102.4  Orin
   8  1173    8  102.4  Orin
   4  1020    4     51  Orin
""",
)

# https://images.nvidia.com/aem-dam/Solutions/geforce/ada/nvidia-ada-gpu-architecture.pdf; laptops:
# https://www.nvidia.com/en-us/geforce/laptops/compare/; the L20 and L40 have the rates of GeForce cards:
# https://www.nvidia.com/en-us/data-center/l40/
_ADA_GEFORCE = Family(
    ("cuda", 8, 9),
    Unit(float64=4, float32=256, float32_matrix=256, float16=512, bfloat16=512, float8=1024),
    """
  24  2460    8    272  GeForce RTX 4060
  34  2535   16    288  GeForce RTX 4060 Ti
  46  2475   12  504.2  GeForce RTX 4070
  56  2475   12  504.2  GeForce RTX 4070 SUPER
  60  2610   12  504.2  GeForce RTX 4070 Ti
  66  2610   16  672.3  GeForce RTX 4070 Ti SUPER
  76  2505   16  716.8  GeForce RTX 4080
  80  2550   16  736.3  GeForce RTX 4080 SUPER
 128  2520   24   1008  GeForce RTX 4090
 114  2520   24   1008  GeForce RTX 4090 D
  20  2370    6    192  GeForce RTX 4050 Laptop GPU
  24  2370    8    256  GeForce RTX 4060 Laptop GPU
  36  2175    8    256  GeForce RTX 4070 Laptop GPU
  58  2280   12    432  GeForce RTX 4080 Laptop GPU
  76  2040   16    576  GeForce RTX 4090 Laptop GPU
  92  2520   48    864  NVIDIA L20
 142  2490   48    864  NVIDIA L40
""",
)
_ADA = Family(
    ("cuda", 8, 9),
    Unit(float64=4, float32=256, float32_matrix=512, float16=1024, bfloat16=1024, float8=2048),
    """
  58  2040   24  300.1  NVIDIA L4
 142  2520   48    864  NVIDIA L40S
  22  2130   16    256  NVIDIA RTX 2000 Ada Generation
  48  2175   20    360  NVIDIA RTX 4000 Ada Generation
  48  1560   20    280  NVIDIA RTX 4000 SFF Ada Generation
  60  2580   24    432  NVIDIA RTX 4500 Ada Generation
 100  2550   32    576  NVIDIA RTX 5000 Ada Generation
 110  2460   48    864  NVIDIA RTX 5880 Ada Generation
 142  2505   48    960  NVIDIA RTX 6000 Ada Generation
  16  2025    4    128  NVIDIA RTX 500 Ada Generation Laptop GPU
  20  2025    6    192  NVIDIA RTX 1000 Ada Generation Laptop GPU
  24  2115    8    256  NVIDIA RTX 2000 Ada Generation Laptop GPU
  36  1695    8    256  NVIDIA RTX 3000 Ada Generation Laptop GPU
  40  1545   12    432  NVIDIA RTX 3500 Ada Generation Laptop GPU
  58  1665   12    432  NVIDIA RTX 4000 Ada Generation Laptop GPU
  76  2115   16    576  NVIDIA RTX 5000 Ada Generation Laptop GPU
  24  2010    8    256  NVIDIA RTX 2000 Ada Generation Embedded GPU
  40  2250   12    432  NVIDIA RTX 3500 Ada Generation Embedded GPU
  76  1680   16    576  NVIDIA RTX 5000 Ada Generation Embedded GPU
""",
)

# https://www.nvidia.com/en-us/data-center/h100/, …/h200/, …/grace-hopper-superchip/ and, for the H20, the H800, and
# the H100 of 64, 94 and 96 GB, which all report `NVIDIA H100`, https://www.techpowerup.com/gpu-specs/
_HOPPER = Stated(
    ("cuda", 9, 0),
    """
 132   80   3350    34    67    67 494.7  989.4  989.4 1978.9  NVIDIA H100 80GB HBM3
 132   64   2020    34    67    67 494.7  989.4  989.4 1978.9  NVIDIA H100
 132   94   3360    34    67    67 494.7  989.4  989.4 1978.9  NVIDIA H100
 132   96   3360    34    67    67 494.7  989.4  989.4 1978.9  NVIDIA H100
 114   80   2000    26    51    51   378    756    756   1513  NVIDIA H100 PCIe
 132   94   3900    30    60    60 417.5  835.5  835.5   1671  NVIDIA H100 NVL
 132   80   3350     1     1    67 494.7  989.4  989.4 1978.9  NVIDIA H800
 114   80   2000   0.8   0.8    51   378    756    756   1513  NVIDIA H800 PCIe
 132   94   3900     1     1    60 417.5  835.5  835.5   1671  NVIDIA H800 NVL
 132  141   4800    34    67    67 494.7  989.4  989.4 1978.9  NVIDIA H200
 132  141   4800    30    60    60 417.5  835.5  835.5   1671  NVIDIA H200 NVL
  78   96   4000     1     1    44    74    148    148    296  NVIDIA H20
  78   96   4000     1     1    44    74    148    148    296  NVIDIA H20 NVL16
  78  141   4800     1     1    44    74    148    148    296  NVIDIA H20-3e
 132   96   4000    34    67    67 494.7  989.4  989.4 1978.9  NVIDIA GH200 120GB
 132   96   4000    34    67    67 494.7  989.4  989.4 1978.9  NVIDIA GH200 480GB
 132  144   4900    34    67    67 494.7  989.4  989.4 1978.9  NVIDIA GH200 144G HBM3e
""",
)

# https://www.nvidia.com/en-us/data-center/hgx/ and …/dgx-b200/, eighths of the system; …/gb200-nvl72/ and
# …/gb300-nvl72/, 72nds; B300 also https://glennklockwood.com/garden/processors/B300
_BLACKWELL_DATA_CENTRE = Stated(
    ("cuda", 10, 0),
    """
 148  192   8000    30    30    60   900   1800   1800   3500  NVIDIA B100
 148  180   8000    37    37    75  1125   2250   2250   4500  NVIDIA B200
 152  186   8000    40    40    80  1250   2500   2500   5000  NVIDIA GB200
""",
)
_BLACKWELL_ULTRA = Stated(
    ("cuda", 10, 3),
    """
 148  288   8000  1.25  1.25    75  1125   2250   2250   4500  NVIDIA B300 SXM6 AC
 152  288   8000   1.3   1.3    80  1250   2500   2500   5000  NVIDIA GB300
""",
)
# https://images.nvidia.com/aem-dam/Solutions/geforce/blackwell/nvidia-rtx-blackwell-gpu-architecture.pdf; laptops:
# https://www.nvidia.com/en-us/geforce/laptops/50-series/
_BLACKWELL_GEFORCE = Family(
    ("cuda", 12, 0),
    Unit(float64=4, float32=256, float32_matrix=256, float16=512, bfloat16=512, float8=1024),
    """
  20  2572    8    320  GeForce RTX 5050
  30  2497    8    448  GeForce RTX 5060
  36  2572   16    448  GeForce RTX 5060 Ti
  48  2512   12    672  GeForce RTX 5070
  70  2452   16    896  GeForce RTX 5070 Ti
  84  2617   16    960  GeForce RTX 5080
 170  2407   32   1792  GeForce RTX 5090
 170  2407   32   1792  GeForce RTX 5090 D
 170  2407   24   1344  GeForce RTX 5090 D v2
  20  2662    8    384  GeForce RTX 5050 Laptop GPU
  26  2497    8    384  GeForce RTX 5060 Laptop GPU
  36  2347    8    384  GeForce RTX 5070 Laptop GPU
  46  2220   12    672  GeForce RTX 5070 Ti Laptop GPU
  60  2287   16    896  GeForce RTX 5080 Laptop GPU
  82  2160   24    896  GeForce RTX 5090 Laptop GPU
""",
)
# https://www.nvidia.com/content/dam/en-zz/Solutions/design-visualization/quadro-product-literature/
# NVIDIA-RTX-Blackwell-PRO-GPU-Architecture-v1.0.pdf; GB10: https://www.nvidia.com/en-us/products/workstations/dgx-spark/
_BLACKWELL = Family(
    ("cuda", 12, 0),
    Unit(float64=4, float32=256, float32_matrix=512, float16=1024, bfloat16=1024, float8=2048),
    """
 156  2430   84   1570  NVIDIA RTX 6000D
  34  1957   16    288  NVIDIA RTX PRO 2000 Blackwell
  70  2055   24    672  NVIDIA RTX PRO 4000 Blackwell
  70  1432   24    432  NVIDIA RTX PRO 4000 Blackwell SFF Edition
  82  2407   32    896  NVIDIA RTX PRO 4500 Blackwell
 110  2377   48   1344  NVIDIA RTX PRO 5000 Blackwell
 110  2377   72   1344  NVIDIA RTX PRO 5000 72GB Blackwell
 188  2617   96   1792  NVIDIA RTX PRO 6000 Blackwell Workstation Edition
 188  2280   96   1792  NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition
 188  2617   96   1597  NVIDIA RTX PRO 6000 Blackwell Server Edition
  48  2418  128  273.2  NVIDIA GB10
""",
)
# https://www.nvidia.com/en-us/autonomous-machines/embedded-systems/jetson-thor/: T5000 and T4000
_THOR = Family(
    ("cuda", 11, 0),
    Unit(float32=256, float32_matrix=4096, float16=8192, bfloat16=8192, float8=16384),
    """
  20  1575  128  273.1  NVIDIA Thor
  12  1530   64  273.1  NVIDIA Thor
""",
)

# AMD: a unit is a compute unit

# https://www.amd.com/en/products/accelerators/instinct/mi100.html, …/mi200/mi210.html, …/mi250.html, …/mi250x.html (one
# device of a trace is one of the two dies of a card), …/mi300/mi300a.html, …/mi300x.html, …/mi325x.html,
# …/mi350/mi350x.html, …/mi355x.html. TF32 is opt-in on an MI300, so float32 counts as such.
_CDNA_1_AND_2 = Stated(
    ("rocm", 9, 0),
    """
 120   32 1228.8  11.5     -  23.1  46.1  184.6   92.3      -  AMD Instinct MI100
 104   64 1638.4  22.6  45.3  22.6  45.3    181    181      -  AMD Instinct MI210
 104   64 1638.4  22.6  45.3  22.6  45.3    181    181      -  AMD Instinct MI210 / MI250
 104   64 1638.4 22.65 45.25 22.65 45.25    181    181      -  AMD Instinct MI250
 110   64 1638.4 23.95 47.85 23.95 47.85  191.5  191.5      -  AMD Instinct MI250X
 104   64 1638.4 22.65 45.25 22.65 45.25    181    181      -  AMD Instinct MI250X / MI250
 110   64 1638.4 23.95 47.85 23.95 47.85  191.5  191.5      -  AMD Instinct MI250X / MI250
""",
)
_CDNA_3 = Stated(
    ("rocm", 9, 4),
    """
 228  128   5300  61.3 122.6 122.6 122.6  980.6  980.6 1961.2  AMD Instinct MI300A
 304  192   5300  81.7 163.4 163.4 163.4 1307.4 1307.4 2614.9  AMD Instinct MI300X
 304  256   6000  81.7 163.4 163.4 163.4 1307.4 1307.4 2614.9  AMD Instinct MI325X
""",
)
_CDNA_4 = Stated(
    ("rocm", 9, 5),
    """
 256  288   8000  72.1  72.1 144.2 144.2 2306.9 2306.9 4613.7  AMD Instinct MI350X
 256  288   8000  78.6  78.6 157.3 157.3 2516.6 2516.6 5033.2  AMD Instinct MI355X
""",
)
# https://www.amd.com/content/dam/amd/en/documents/instinct-tech-docs/white-papers/amd-cdna-3-white-paper.pdf, with the
# clock of the MI300X
_MI308X = Family(
    ("rocm", 9, 4),
    Unit(
        float64=128,
        float64_matrix=256,
        float32=256,
        float32_matrix=256,
        float16=2048,
        bfloat16=2048,
        float8=4096,
    ),
    """
  80  2100  192   5300  AMD Instinct MI308X
""",
)
# https://www.amd.com/system/files/documents/vega-architecture-whitepaper.pdf ("rapid packed math")
_VEGA = Family(
    ("rocm", 9, 0),
    Unit(float64=8, float32=128, float16=256, matrix=False),
    """
  64  1677    8  483.8  AMD Radeon RX Vega 64
  56  1471    8  409.6  AMD Radeon RX Vega 56
  64  1600   16  483.8  AMD Radeon Vega Frontier Edition
  64  1500   16  483.8  AMD Radeon Pro WX 9100
  56  1500    8    512  AMD Radeon Pro WX 8200
  56  1500   16  483.8  AMD Radeon Pro V340
  64  1500   16  483.8  AMD Radeon Instinct MI25
""",
)
# https://www.amd.com/system/files/documents/radeon-instinct-mi50-datasheet.pdf
_VEGA_20 = Family(
    ("rocm", 9, 0),
    Unit(float64=64, float32=128, float16=256, matrix=False),
    """
  60  1746   16   1020  AMD Instinct MI50
  64  1800   32   1020  AMD Instinct MI60
  60  1750   16   1020  AMD Radeon VII
  60  1700   16   1020  AMD Radeon Pro VII
  64  1800   32   1024  AMD Instinct MI60 / MI50
""",
)
# https://www.amd.com/system/files/documents/rdna-whitepaper.pdf
_RDNA = Family(
    ("rocm", 10, 1),
    Unit(float64=8, float32=128, float16=256, matrix=False),
    """
  22  1845    4    224  AMD Radeon RX 5500 XT
  36  1560    6    288  AMD Radeon RX 5600 XT
  36  1725    8    448  AMD Radeon RX 5700
  40  1905    8    448  AMD Radeon RX 5700 XT
  36  1880    8    448  AMD Radeon Pro W5700
  22  1855    8    224  AMD Radeon Pro W5500
  36  1600    8    512  AMD Radeon Pro V520
""",
)
# https://www.amd.com/en/products/graphics/desktops/radeon.html
_RDNA_2 = Family(
    ("rocm", 10, 3),
    Unit(float64=8, float32=128, float16=256, matrix=False),
    """
  12  2321    4    128  AMD Radeon RX 6400
  16  2815    4  143.9  AMD Radeon RX 6500 XT
  28  2491    8    224  AMD Radeon RX 6600
  32  2589    8    256  AMD Radeon RX 6600 XT
  32  2635    8  280.3  AMD Radeon RX 6650 XT
  36  2450   10    320  AMD Radeon RX 6700
  40  2581   12    384  AMD Radeon RX 6700 XT
  40  2600   12    432  AMD Radeon RX 6750 XT
  60  2105   16    512  AMD Radeon RX 6800
  72  2250   16    512  AMD Radeon RX 6800 XT
  80  2250   16    512  AMD Radeon RX 6900 XT
  80  2310   16    576  AMD Radeon RX 6950 XT
  12  2321    4    128  AMD Radeon Pro W6400
  28  2580    8    224  AMD Radeon Pro W6600
  60  2322   32    512  AMD Radeon Pro W6800
  72  2200   32    512  AMD Radeon Pro V620
""",
)
# https://gpuopen.com/learn/wmma_on_rdna3/: 512 operations of 16 bits per cycle
_RDNA_3 = Family(
    ("rocm", 11, 0),
    Unit(float64=8, float32=256, float16=512, bfloat16=512),
    """
  32  2655    8    288  AMD Radeon RX 7600
  32  2755   16    288  AMD Radeon RX 7600 XT
  32  2695    8    288  AMD Radeon RX 7650 GRE
  40  2600   16  622.1  AMD Radeon RX 7700
  54  2544   12    432  AMD Radeon RX 7700 XT
  60  2430   16  624.1  AMD Radeon RX 7800 XT
  80  2245   16    576  AMD Radeon RX 7900 GRE
  84  2394   20    800  AMD Radeon RX 7900 XT
  96  2498   24    960  AMD Radeon RX 7900 XTX
  28  2410    8    256  AMD Radeon RX 7600M
  32  2469    8    288  AMD Radeon RX 7600M XT
  32  2500    8    288  AMD Radeon RX 7700S
  60  2335   12    432  AMD Radeon RX 7800M
  72  2090   16    576  AMD Radeon RX 7900M
  28  1700    8    256  AMD Radeon Pro W7500
  32  2440    8    288  AMD Radeon Pro W7600
  48  2600   16    576  AMD Radeon Pro W7700
  70  2525   32    576  AMD Radeon Pro W7800
  96  2495   48    864  AMD Radeon Pro W7900
  96  2156   48    864  AMD Radeon Pro W7900D
  54  2000   28    504  AMD Radeon Pro V710
  70  2525   48    864  AMD Radeon Pro W7800 48GB
  32  2800  128    256  AMD Radeon 8050S Graphics
  40  2900  128    256  AMD Radeon 8060S Graphics
  16  2900   64    128  AMD Radeon 890M Graphics
  12  2900   64    128  AMD Radeon 880M Graphics
  96  2495   48    864  AMD Radeon Pro W7900 Dual Slot
""",
)
# https://gpuopen.com/learn/using_matrix_core_amd_rdna4/
_RDNA_4 = Family(
    ("rocm", 12, 0),
    Unit(float64=8, float32=256, float16=1024, bfloat16=1024, float8=2048),
    """
  28  2990    8  322.3  AMD Radeon RX 9060
  32  3130   16  322.3  AMD Radeon RX 9060 XT
  56  2520   16  644.6  AMD Radeon RX 9070
  48  2790   12    432  AMD Radeon RX 9070 GRE
  64  2970   16  644.6  AMD Radeon RX 9070 XT
  64  2920   32  644.6  AMD Radeon AI PRO R9700
  48  2020   32    576  AMD Radeon AI PRO R9600D
""",
)

# Intel: a unit is a Xe core

# https://www.intel.com/content/www/us/en/developer/articles/technical/intel-data-center-gpu-max-series-overview.html;
# a device of a trace may be one of the two stacks of a 1550
_PONTE_VECCHIO = Family(
    ("xpu", 0, 0),
    Unit(float64=256, float32=256, float32_matrix=2048, float16=4096, bfloat16=4096),
    """
  56  1550   48   1229  Intel(R) Data Center GPU Max 1100
 128  1600  128   3277  Intel(R) Data Center GPU Max 1550
  64  1600   64   1639  Intel(R) Data Center GPU Max 1550
""",
)
# https://www.intel.com/content/www/us/en/developer/articles/technical/introduction-to-the-xe-hpg-architecture.html
_ALCHEMIST = Family(
    ("xpu", 0, 0),
    Unit(float32=256, float16=2048, bfloat16=2048),
    """
   6  1750    4    124  Intel(R) Arc(TM) A310 Graphics
   6  2200    4    112  Intel(R) Arc(TM) A350M Graphics
   8  2050    4    112  Intel(R) Arc(TM) A370M Graphics
   8  2050    6    186  Intel(R) Arc(TM) A380 Graphics
  16  2050    8    224  Intel(R) Arc(TM) A550M Graphics
  24  2000    8    512  Intel(R) Arc(TM) A580 Graphics
  24  2050   12    336  Intel(R) Arc(TM) A730M Graphics
  28  2400    8    512  Intel(R) Arc(TM) A750 Graphics
  32  2400   16    560  Intel(R) Arc(TM) A770 Graphics
  32  2400    8    512  Intel(R) Arc(TM) A770 Graphics
  32  2050   16    512  Intel(R) Arc(TM) A770M Graphics
   8  1700    6    192  Intel(R) Arc(TM) Pro A40 Graphics
   8  2350    6    192  Intel(R) Arc(TM) Pro A50 Graphics
  16  2050   12    384  Intel(R) Arc(TM) Pro A60 Graphics
   8  1950    6    186  Intel(R) Data Center GPU Flex 140
  32  2050   16    512  Intel(R) Data Center GPU Flex 170
""",
)
# https://www.intel.com/content/www/us/en/products/sku/241598/intel-arc-b580-graphics/specifications.html
_BATTLEMAGE = Family(
    ("xpu", 0, 0),
    Unit(float32=256, float16=2048, bfloat16=2048),
    """
  18  2500   10    380  Intel(R) Arc(TM) B570 Graphics
  20  2670   12    456  Intel(R) Arc(TM) B580 Graphics
  16  2600   16    224  Intel(R) Arc(TM) Pro B50 Graphics
  20  2400   24    456  Intel(R) Arc(TM) Pro B60 Graphics
""",
)

# Apple: a unit is a core, with the most that the model has

# https://github.com/philipturner/metal-benchmarks: 128 multiplications with addition per cycle, in 16 and 32 bits;
# clocks: https://hmc-tech.com/gpu/; bandwidths: https://support.apple.com/specs
_APPLE = Family(
    ("mps", 0, 0),
    Unit(float32=256, float16=256, matrix=False),
    """
   8  1278   16   68.3  Apple M1
  16  1296   32    200  Apple M1 Pro
  32  1296   64    400  Apple M1 Max
  64  1296  128    800  Apple M1 Ultra
  10  1398   24    100  Apple M2
  19  1398   32    200  Apple M2 Pro
  38  1398   96    400  Apple M2 Max
  76  1398  192    800  Apple M2 Ultra
  10  1398   24    100  Apple M3
  18  1398   36    150  Apple M3 Pro
  40  1398  128    400  Apple M3 Max
  80  1398  512    819  Apple M3 Ultra
  10  1578   32    120  Apple M4
  20  1678   64    273  Apple M4 Pro
  40  1678  128    546  Apple M4 Max
""",
)
# https://www.apple.com/newsroom/2025/10/apple-unleashes-m5-the-next-big-leap-in-ai-performance-for-apple-silicon/: each
# core has a matrix unit, whose rate is not stated
_APPLE_M5 = Family(
    ("mps", 0, 0),
    Unit(float32=256, float16=None),
    """
  10  1740   32    153  Apple M5
""",
)

FAMILIES: tuple[Family | Stated, ...] = (
    _PASCAL, _P100, _V100, _VOLTA, _XAVIER, _TURING_WITHOUT_MATRIX_UNITS, _TURING_GEFORCE, _TURING, _T4, _A100,
    _AMPERE_DATA_CENTRE, _AMPERE_GEFORCE, _AMPERE, _ORIN, _ADA_GEFORCE, _ADA, _HOPPER, _BLACKWELL_DATA_CENTRE,
    _BLACKWELL_ULTRA, _BLACKWELL_GEFORCE, _BLACKWELL, _THOR, _CDNA_1_AND_2, _CDNA_3, _CDNA_4, _MI308X,
    _VEGA, _VEGA_20, _RDNA, _RDNA_2, _RDNA_3, _RDNA_4, _PONTE_VECCHIO, _ALCHEMIST, _BATTLEMAGE, _APPLE, _APPLE_M5,
)  # fmt: skip

CACHES: Mapping[Architecture, int] = {
    ("cuda", 6, 0): 4, ("cuda", 6, 1): 3, ("cuda", 7, 0): 6, ("cuda", 7, 2): 1, ("cuda", 7, 5): 6, ("cuda", 8, 0): 40,
    ("cuda", 8, 6): 6, ("cuda", 8, 7): 4, ("cuda", 8, 9): 96, ("cuda", 9, 0): 60, ("cuda", 10, 0): 126,
    ("cuda", 10, 3): 126, ("cuda", 11, 0): 32, ("cuda", 12, 0): 128, ("rocm", 9, 0): 8, ("rocm", 9, 4): 288,
    ("rocm", 9, 5): 288, ("rocm", 10, 1): 4, ("rocm", 10, 3): 132, ("rocm", 11, 0): 102, ("rocm", 12, 0): 72,
    ("xpu", 0, 0): 408, ("mps", 0, 0): 96,
}  # fmt: skip
"""MiB of the last caches of the largest model of each architecture, L2 and what AMD calls Infinity Cache: whitepapers
as above, and https://www.techpowerup.com/gpu-specs/.
"""

CACHE_RATE = 64 * 2e9
"""Most bytes per second that one unit gets from the last cache: 64 per clock, at 2 GHz."""
