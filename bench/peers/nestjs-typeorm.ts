import 'reflect-metadata';
import {
  Body,
  type CanActivate,
  Controller,
  type ExecutionContext,
  HttpCode,
  Injectable,
  Module,
  Post,
  UnauthorizedException,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { InjectRepository, TypeOrmModule } from '@nestjs/typeorm';
import { Column, Entity, PrimaryColumn, type Repository } from 'typeorm';

const [port, token, path, synchronous] = process.argv.slice(2);

@Entity()
class Plant {
  @PrimaryColumn('integer')
  id!: number;

  @Column('text')
  name!: string;

  @Column('text', { nullable: true })
  tag?: string;
}

@Injectable()
class TokenGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { headers } = context.switchToHttp().getRequest();
    if (headers.authorization !== `Bearer ${token}`) throw new UnauthorizedException();
    return true;
  }
}

@Controller('plants')
class PlantController {
  constructor(@InjectRepository(Plant) private readonly plants: Repository<Plant>) {}

  @Post()
  @HttpCode(200)
  async create(@Body() { id, name, tag }: Plant) {
    await this.plants.insert({ id, name, tag });
    return { name, tag };
  }
}

@Module({
  imports: [
    TypeOrmModule.forRoot({
      type: 'better-sqlite3',
      database: path!,
      entities: [Plant],
      synchronize: true,
      enableWAL: true,
      prepareDatabase: database => database.pragma(`synchronous = ${synchronous}`),
    }),
    TypeOrmModule.forFeature([Plant]),
  ],
  controllers: [PlantController],
})
class AppModule {}

const app = await NestFactory.create(AppModule, { logger: false });
app.useGlobalGuards(new TokenGuard());
app.enableShutdownHooks();
await app.listen(Number(port), '127.0.0.1');
